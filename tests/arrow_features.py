"""What the installed pyarrow can do."""

from functools import cache

import pyarrow as pa
import pyarrow.parquet as parquet


@cache
def can_write_null_lists() -> bool:
    """Whether Parquet files with missing lists of a fixed size can be made at all."""
    values = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float64(), 2))
    try:
        parquet.write_table(pa.table({"values": values}), pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:
        return False
    return True
