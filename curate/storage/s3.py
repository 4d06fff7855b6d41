"""Amazon S3 and what speaks like it, through boto3 (the extra `s3`).

Trying again is the affair of `curate.storage.requests`, not of the SDK. Credentials come from where the SDK
finds them (environment, profile, role). Uploads carry MD5, the one checksum that every server of the kind compares.
Objects above `PART_BYTES` go up in parts, which are invisible until they are put together, on the same condition.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from curate.storage.client import DIGEST, ObjectInfo, Page, pieces
from curate.storage.errors import StoreError
from curate.storage.options import StorageOptions
from curate.storage.requests import BusyError, Requests, TakenError

PART_BYTES: Final = 32 << 20
MOST_PARTS: Final = 9_000
PARTS_AT_ONCE: Final = 4

_BUSY: Final = frozenset(
    {
        "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "InternalError",
        "ServiceUnavailable", "RequestTimeout", "ConditionalRequestConflict",
        "OperationAborted", "BadDigest", "IncompleteBody",
    }
)  # fmt: skip
"""Codes of errors after which the same request may be made again."""


class S3Client:
    """A bucket behind S3's interface."""

    def __init__(self, bucket: str, options: StorageOptions, requests: Requests, part_bytes: int = PART_BYTES) -> None:
        """Open the bucket; nothing is asked of the server yet.

        Raises:
            StoreError: boto3 is not installed.
        """
        self.bucket, self.requests, self.part_bytes = bucket, requests, part_bytes
        self._session, self._client = _open(options)

    def head(self, key: str) -> ObjectInfo:
        """Return what is known about an object."""
        found = self._ask("head_object", key)
        digest = found.get("Metadata", {}).get(DIGEST)
        return ObjectInfo(key, found["ContentLength"], _version(found), found["LastModified"].timestamp(), digest)

    def get(self, key: str, start: int, stop: int | None) -> bytes:
        """Return bytes `start` to `stop` of an object, fewer at its end."""
        if stop is not None and stop <= start:
            return b""
        span = f"bytes={start}-" if stop is None else f"bytes={start}-{stop - 1}"
        ranged = {} if start == 0 and stop is None else {"Range": span}
        found = self._ask("get_object", key, **ranged)
        return b"" if found is None else bytes(found["Body"])

    def put(self, key: str, source: Path, digest: str, *, create: bool) -> None:
        """Write the file `source` as an object."""
        condition = {"IfNoneMatch": "*"} if create else {}
        metadata = {DIGEST: digest}
        size = source.stat().st_size
        if size > self.part_bytes:
            self._put_parts(key, source, size, metadata, condition)
        else:
            content = source.read_bytes()
            self._ask("put_object", key, Body=content, ContentMD5=_md5(content), Metadata=metadata, **condition)

    def _put_parts(
        self, key: str, source: Path, size: int, metadata: dict[str, str], condition: dict[str, str]
    ) -> None:
        upload = self._ask("create_multipart_upload", key, Metadata=metadata)["UploadId"]

        def send(number: int, start: int, stop: int) -> dict[str, Any]:
            with source.open("rb") as file:
                file.seek(start)
                content = file.read(stop - start)
            sent = self._ask(
                "upload_part", key, UploadId=upload, PartNumber=number, Body=content, ContentMD5=_md5(content)
            )
            return {"PartNumber": number, "ETag": sent["ETag"]}

        try:
            parts = {"Parts": _at_once(send, pieces(size, self.part_bytes, MOST_PARTS))}
            self._ask("complete_multipart_upload", key, UploadId=upload, MultipartUpload=parts, **condition)
        except BaseException:
            with suppress(Exception):  # what is left of an upload is invisible, and the first error is the one to tell
                self._ask("abort_multipart_upload", key, UploadId=upload)
            raise

    def creations(self) -> Mapping[str, Callable[[str, Path, str], None]]:
        """Return the ways in which objects are created if absent."""
        return {
            "an upload": lambda key, source, digest: self.put(key, source, digest, create=True),
            "an upload in parts": lambda key, source, digest: self._put_parts(
                key, source, source.stat().st_size, {DIGEST: digest}, {"IfNoneMatch": "*"}
            ),
        }

    def delete(self, key: str) -> None:
        """Remove an object, there or not."""
        self._ask("delete_object", key)

    def page(self, prefix: str, delimiter: str, token: str | None) -> Page:
        """Return a page of the objects whose keys begin with `prefix`, ordered."""
        more = {"ContinuationToken": token} if token else {}
        found = self._ask("list_objects_v2", None, Prefix=prefix, Delimiter=delimiter, **more)
        objects = tuple(
            ObjectInfo(entry["Key"], entry["Size"], _version(entry), entry["LastModified"].timestamp())
            for entry in found.get("Contents", [])
        )
        prefixes = tuple(entry["Prefix"] for entry in found.get("CommonPrefixes", []))
        return Page(objects, prefixes, found.get("NextContinuationToken"))

    def kvstore(self, prefix: str) -> dict[str, Any]:
        """Return TensorStore's specification.

        It reads no AWS_ENDPOINT_URL, so the endpoint stands in it, and logs a line for every place in which it finds
        no credentials, so the kind of place where the SDK found them stands in it, never the credentials.
        """
        meta = self._client.meta
        spec: dict[str, Any] = {"driver": "s3", "bucket": self.bucket, "path": prefix}
        spec["s3_request_concurrency"] = {"limit": self.requests.limit}
        found = self._session.get_credentials()
        if found is not None and found.method in _PROVIDERS:
            spec["aws_credentials"] = {"type": _PROVIDERS[found.method]}
        if not meta.endpoint_url.endswith(".amazonaws.com"):
            spec["endpoint"] = meta.endpoint_url
        return spec | ({"aws_region": meta.region_name} if meta.region_name else {})

    def _ask(self, operation: str, key: str | None, **more: Any) -> Any:
        """Make one request, again where that may help; of a `get_object` behind the end of the object return None."""
        where = f"s3://{self.bucket}/{key or ''}"
        place = {"Bucket": self.bucket} | ({} if key is None else {"Key": key})

        def once() -> Any:
            with _translating(where):
                try:
                    found = getattr(self._client, operation)(**place, **more)
                except self._client.exceptions.ClientError as error:
                    if _code(error) == "InvalidRange":
                        return None
                    raise
                if operation == "get_object":
                    found["Body"] = found["Body"].read()
                return found

        return self.requests.make(f"{where}, {operation}", once)


@contextmanager
def _translating(where: str) -> Iterator[None]:
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as error:
        raise _translated(error, where) from error
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as error:
        raise StoreError(
            f"{where}: {error}. Give credentials as for the SDK: environment, profile or role (docs/storage.md)"
        ) from error
    except (exceptions.HTTPClientError, exceptions.ConnectionError, exceptions.IncompleteReadError) as error:
        raise BusyError(f"{where}: {error}") from error
    except exceptions.BotoCoreError as error:
        raise StoreError(f"{where}: {error}") from error


_PROVIDERS: Final = {"env": "environment", "iam-role": "imds"}
"""The SDK's name of a place of credentials → TensorStore's, which looks everywhere where it is told none."""


def _open(options: StorageOptions) -> tuple[Any, Any]:
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise StoreError(f"S3 needs boto3 ({error}): pip install 'curate[s3]'") from error
    config = Config(
        retries={"total_max_attempts": 1},
        max_pool_connections=options.requests,
        request_checksum_calculation="when_required",  # servers that are not Amazon's refuse its trailing checksums
        response_checksum_validation="when_required",
        connect_timeout=20,
        read_timeout=60,
    )
    session = boto3.session.Session()
    return session, session.client("s3", endpoint_url=options.endpoint, region_name=options.region, config=config)


def _at_once(send: Callable[[int, int, int], dict[str, Any]], ranges: Iterator[tuple[int, int]]) -> list[Any]:
    with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
        sent = [pool.submit(send, number, start, stop) for number, (start, stop) in enumerate(ranges, 1)]
        try:
            return [future.result() for future in sent]
        finally:
            for future in sent:
                future.cancel()


def _translated(error: Any, where: str) -> Exception:
    code, status = _code(error), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    said = f"{where}: {error.operation_name}: {code} {error.response.get('Error', {}).get('Message', '')}"
    if code in ("404", "NoSuchKey"):
        return FileNotFoundError(f"{where} is not there")
    if code in ("PreconditionFailed", "412"):
        return TakenError(said)
    if code in _BUSY or status in (429, 500, 502, 503, 504):
        return BusyError(said)
    if code == "NoSuchBucket":
        return StoreError(f"{said}: make the bucket first, or look at endpoint and region")
    if code == "RequestTimeTooSkewed":
        return StoreError(f"{said}: set the clock of this machine")
    if status in (401, 403):
        return StoreError(f"{said}: the credentials found do not allow it (docs/storage.md lists the rights)")
    return StoreError(said)


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _version(found: Any) -> str:
    version = found.get("VersionId")
    return str(version) if version and version != "null" else str(found["ETag"]).strip('"')


def _md5(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
