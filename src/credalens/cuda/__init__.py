"""Credal predictions of CUDA tensors, computed where the tensors are: Triton kernels that give the CPU path's numbers.

``describe_rows`` (``bounds.py``; ``single.py`` for float32, ``narrow.py`` for few classes) finds all but the lower entropy;
``close_at_root`` (``root.py``; ``narrow_root.py`` for few) certifies that of most rows, ``search_rows`` (``search.py``)
searches for the others; ``rows.py`` decides what runs on which rows, in the memory of ``memory.py`` and by ``launch.py``;
``members.py`` is the door.
"""

from credalens.cuda.members import GpuMembers, gpu_members

__all__ = ["GpuMembers", "gpu_members"]
