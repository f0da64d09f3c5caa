"""Credal predictions of CUDA tensors, computed where the tensors are: Triton kernels that give the CPU path's numbers.

``describe_rows`` (``bounds.py``; ``narrow.py`` for few classes) reads the members once; ``search_lanes`` (``lanes.py``) and
``search_rows`` (``search.py``) find the lower entropy; ``rows.py`` decides what runs on which rows; ``members.py`` is the
door.
"""

from credalens.device.members import GpuMembers, gpu_members

__all__ = ["GpuMembers", "gpu_members"]
