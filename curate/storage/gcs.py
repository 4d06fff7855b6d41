"""Google Cloud Storage through its JSON interface, with google-auth (the extra `gcs`).

Five requests do not need a client library. Trying again is the affair of `curate.storage.requests`. Credentials are
the application's default ones; against an endpoint of one's own (an emulator) none are sent. An upload names the MD5
of its bytes, which the server compares, and `ifGenerationMatch=0` where it must create.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from curate.storage.client import DIGEST, ObjectInfo, Page
from curate.storage.errors import StoreError
from curate.storage.options import StorageOptions
from curate.storage.requests import BusyError, Requests, TakenError

ENDPOINT: Final = "https://storage.googleapis.com"
SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
TIMEOUTS: Final = (20, 120)
"""Seconds to connect, and between bytes of an answer."""

_BUSY: Final = frozenset({408, 429, 500, 502, 503, 504})
_BOUNDARY: Final = b"curate-object-5f0c"


class GcsClient:
    """A bucket of Google's."""

    def __init__(self, bucket: str, options: StorageOptions, requests: Requests) -> None:
        """Open the bucket; nothing is asked of the server yet.

        Raises:
            StoreError: google-auth is not installed, or finds no credentials.
        """
        self.bucket, self.requests = bucket, requests
        self.endpoint = (options.endpoint or ENDPOINT).rstrip("/")
        self._session = _open(options)

    def head(self, key: str) -> ObjectInfo:
        """Return what is known about an object."""
        return _info(self._ask("GET", self._object(key), key).json())

    def get(self, key: str, start: int, stop: int | None) -> bytes:
        """Return bytes `start` to `stop` of an object, fewer at its end."""
        if stop is not None and stop <= start:
            return b""
        span = f"bytes={start}-" if stop is None else f"bytes={start}-{stop - 1}"
        headers = {"Accept-Encoding": "identity"} | ({} if start == 0 and stop is None else {"Range": span})
        answer = self._ask("GET", f"{self._object(key)}?alt=media", key, headers=headers, fine=(200, 206, 416))
        return b"" if answer.status_code == 416 else bytes(answer.content)

    def put(self, key: str, source: Path, digest: str, *, create: bool) -> None:
        """Write the file `source` as an object, in one request that the server takes whole or not at all."""
        condition = "&ifGenerationMatch=0" if create else ""
        url = f"{self.endpoint}/upload/storage/v1/b/{self.bucket}/o?uploadType=multipart{condition}"
        headers = {"Content-Type": f"multipart/related; boundary={_BOUNDARY.decode()}"}
        self._ask("POST", url, key, headers=headers, body=lambda: _Upload(key, source, digest))

    def creations(self) -> Mapping[str, Callable[[str, Path, str], None]]:
        """Return the ways in which objects are created if absent."""
        return {"an upload": lambda key, source, digest: self.put(key, source, digest, create=True)}

    def delete(self, key: str) -> None:
        """Remove an object, there or not."""
        self._ask("DELETE", self._object(key), key, fine=(200, 204, 404))

    def page(self, prefix: str, delimiter: str, token: str | None) -> Page:
        """Return a page of the objects whose keys begin with `prefix`, ordered."""
        asked = {"prefix": prefix, "delimiter": delimiter, "pageToken": token}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in asked.items() if value)
        found = self._ask("GET", f"{self.endpoint}/storage/v1/b/{self.bucket}/o?{query}", prefix).json()
        objects = tuple(_info(entry) for entry in found.get("items", []))
        return Page(objects, tuple(found.get("prefixes", [])), found.get("nextPageToken"))

    def kvstore(self, prefix: str) -> dict[str, Any]:
        """Return TensorStore's specification of the objects below `prefix`."""
        limit = {"limit": self.requests.limit}
        return {"driver": "gcs", "bucket": self.bucket, "path": prefix, "gcs_request_concurrency": limit}

    def _object(self, key: str) -> str:
        return f"{self.endpoint}/storage/v1/b/{self.bucket}/o/{quote(key, safe='')}"

    def _ask(
        self,
        method: str,
        url: str,
        key: str,
        fine: tuple[int, ...] = (200,),
        headers: Mapping[str, str] | None = None,
        body: Callable[[], Any] = lambda: None,
    ) -> Any:
        where = f"gs://{self.bucket}/{key}"

        def once() -> Any:
            with _translating(where):
                answer = self._session.request(method, url, timeout=TIMEOUTS, headers=headers, data=body())
            if answer.status_code not in fine:
                raise _translated(answer, where)
            return answer

        return self.requests.make(f"{where}, {method}", once)


@contextmanager
def _translating(where: str) -> Iterator[None]:
    from google.auth.exceptions import GoogleAuthError, TransportError
    from requests import RequestException

    try:
        yield
    except (RequestException, TransportError) as error:
        raise BusyError(f"{where}: {type(error).__name__}: {error}") from error
    except GoogleAuthError as error:
        raise StoreError(f"{where}: {type(error).__name__}: no valid credentials (docs/storage.md)") from error


class _Upload(io.RawIOBase):
    """The body of an upload: metadata, then the file, as they are sent; its length is known before."""

    def __init__(self, key: str, source: Path, digest: str) -> None:
        super().__init__()
        with source.open("rb") as file:
            checksum = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).digest()
        metadata = {"name": key, "md5Hash": base64.b64encode(checksum).decode(), "metadata": {DIGEST: digest}}
        json_part = b"Content-Type: application/json; charset=UTF-8\r\n\r\n" + json.dumps(metadata).encode()
        head = b"--%s\r\n%s\r\n--%s\r\nContent-Type: application/octet-stream\r\n\r\n" % (
            _BOUNDARY, json_part, _BOUNDARY,
        )  # fmt: skip
        tail = b"\r\n--%s--\r\n" % _BOUNDARY
        self.length = len(head) + source.stat().st_size + len(tail)
        self._sent = 0
        self._parts = [io.BytesIO(head), source.open("rb"), io.BytesIO(tail)]

    def __len__(self) -> int:
        return self.length

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._sent  # asked for the length that is left

    def readinto(self, buffer: Any) -> int:
        while self._parts:
            if count := self._parts[0].readinto(buffer):
                self._sent += count
                return count
            self._parts.pop(0).close()
        return 0

    def close(self) -> None:
        for part in self._parts:
            part.close()
        super().close()


def _open(options: StorageOptions) -> Any:
    try:
        import google.auth
        import requests
        from google.auth.transport.requests import AuthorizedSession
        from requests.adapters import HTTPAdapter
    except ImportError as error:
        raise StoreError(f"Google's store needs google-auth, requests ({error}): pip install 'curate[gcs]'") from error
    if options.endpoint is not None:
        session = requests.Session()
        session.trust_env = False  # else a .netrc may add credentials
    else:
        try:
            session = AuthorizedSession(google.auth.default(scopes=[SCOPE])[0])
        except google.auth.exceptions.DefaultCredentialsError as error:
            raise StoreError(f"no credentials for Google's store: {error}") from error
    adapter = HTTPAdapter(pool_maxsize=options.requests, max_retries=0)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


def _translated(answer: Any, where: str) -> Exception:
    status = answer.status_code
    said = f"{where}: HTTP {status} {answer.reason}"
    if status == 404:
        return FileNotFoundError(f"{where} is not there, or there is no such bucket")
    if status == 412:
        return TakenError(said)
    if status in _BUSY:
        return BusyError(said)
    if status in (401, 403):
        return StoreError(f"{said}: the credentials do not allow it (docs/storage.md lists the rights)")
    return StoreError(said)


def _info(found: dict[str, Any]) -> ObjectInfo:
    modified = datetime.fromisoformat(found["updated"]).timestamp()
    return ObjectInfo(
        found["name"], int(found["size"]), str(found["generation"]), modified, found.get("metadata", {}).get(DIGEST)
    )
