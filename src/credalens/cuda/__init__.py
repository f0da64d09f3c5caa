"""Credal predictions of CUDA tensors, computed on their device: Triton kernels with the names and numbers of ``kernels``.

- ``gpu_members``: what ``wrap`` calls; ``self_check``: a probe of the kernels before the first result is trusted.
- ``decomposition``: which kernels run on which rows; ``layout``, ``buffers``, ``launch``: how.
- ``decompose``: all results but the lower entropy; ``lower``: the lower entropy; ``write_results``: the caller's unit.
"""

from credalens.cuda.gpu_members import GpuMembers, as_gpu_members

__all__ = ["GpuMembers", "as_gpu_members"]
