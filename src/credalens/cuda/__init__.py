"""Credal predictions of CUDA tensors, computed on their device: Triton kernels with the names and numbers of ``kernels``.

- ``gpu_members``: what ``wrap`` calls; ``self_check``: a probe of the kernels before the first result is trusted.
- ``decomposition``: which kernels run on which rows, and how rows are laid out; ``launch``: memory, and launching kernels.
- ``decompose``: all results but the lower entropy; ``lower``: the lower entropy; ``counters``: lists of rows, and the last
  step, to the caller's unit; ``tiles`` and ``phi``: what these share.
"""

from credalens.cuda.gpu_members import GpuMembers, as_gpu_members

__all__ = ["GpuMembers", "as_gpu_members"]
