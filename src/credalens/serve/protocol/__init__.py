"""The Open Inference Protocol v2 over HTTP: requests and responses as JSON, their tensors as JSON or as binary data."""
