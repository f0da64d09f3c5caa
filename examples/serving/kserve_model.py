"""credalens inside KServe: a custom predictor. Start it with `python examples/serving/kserve_model.py --http_port 8080`.

It takes what members predict, members x rows x classes, as `credalens serve` does; a predictor with models of its own
would call them where `members` is read. In a cluster it is the container of an InferenceService.
"""

from typing import Any

import kserve
from kserve.utils.numpy_codec import from_np_dtype
from kserve.utils.utils import generate_uuid

from credalens import wrap

OUTPUTS = ("probability", "lower", "upper", "total", "aleatoric", "epistemic")


class CredalModel(kserve.Model):
    """Credal predictions from the outputs of members."""

    def load(self) -> bool:
        """Compile the kernels before the first request comes."""
        wrap([[[0.5, 0.5]], [[0.2, 0.8]]])
        self.ready = True
        return self.ready

    def predict(self, payload: kserve.InferRequest, headers: Any = None, response_headers: Any = None) -> Any:
        """One request."""
        members = payload.inputs[0].as_numpy()
        prediction = wrap(members)
        arrays = {"prediction": prediction.predict()} | {name: getattr(prediction, name) for name in OUTPUTS}
        outputs = [
            kserve.InferOutput(name, list(array.shape), from_np_dtype(array.dtype), array)
            for name, array in arrays.items()
        ]
        return kserve.InferResponse(
            payload.id or generate_uuid(),
            self.name,
            outputs,
            use_binary_outputs=payload.use_binary_outputs,
            requested_outputs=payload.request_outputs,
        )


if __name__ == "__main__":
    model = CredalModel("credal")
    model.load()
    kserve.ModelServer().start([model])
