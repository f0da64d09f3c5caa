"""MLflow: a credal model with its guard in a registry, as a model of the flavour ``python_function``.

Members are ONNX files or networks of torch. Of a network the weights are saved, as safetensors; its architecture is built by a
function of yours that is marked with ``member_factory``. No pickle is written or read.

>>> from credalens.mlflow import save_model
>>> save_model(wrapper, "model", factory="my_package.networks:small", guard=guard)  # doctest: +SKIP
>>> mlflow.pyfunc.load_model("model").predict(rows).columns  # doctest: +SKIP
Index(['prediction', 'probability', 'lower', 'upper', 'total', 'aleatoric', 'epistemic', 'decision', 'p_value', 'reason'])
"""

from credalens.mlflow.model import load_model, log_model, member_factory, save_model

_load_pyfunc = load_model  # the name that MLflow calls

__all__ = ["load_model", "log_model", "member_factory", "save_model"]
