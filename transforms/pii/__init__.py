"""Masking of personal data: e-mail addresses, telephone numbers, IP addresses, cards, IBANs, secrets.

`MaskPII` is the transform, `mask_excerpt` and `mask_evidence` mask what is shown of documents.
"""

from transforms.pii.excerpts import mask_evidence, mask_evidences, mask_excerpt
from transforms.pii.mask import MaskPII

__all__ = ["MaskPII", "mask_evidence", "mask_evidences", "mask_excerpt"]
