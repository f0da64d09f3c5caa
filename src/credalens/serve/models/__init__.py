"""What a server can serve: members' outputs, ONNX files, and models in Python."""
