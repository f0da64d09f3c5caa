"""File formats: .npy and .npz, Parquet, safetensors. Nothing is ever unpickled."""
