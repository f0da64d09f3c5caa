"""credalens inside MLServer: a custom runtime. Start it with `mlserver start examples/serving/mlserver`.

It takes what members predict, members x rows x classes, as `credalens serve` does; a runtime with models of its own
would call them where `members` is decoded. MLServer brings requests to it in JSON, by gRPC or from Kafka.
"""

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse

from credalens import wrap

OUTPUTS = ("probability", "lower", "upper", "total", "aleatoric", "epistemic")


class CredalRuntime(MLModel):
    """Credal predictions from the outputs of members."""

    async def load(self) -> bool:
        """Compile the kernels before the first request comes."""
        wrap([[[0.5, 0.5]], [[0.2, 0.8]]])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """One request."""
        members = NumpyCodec.decode_input(payload.inputs[0])
        prediction = wrap(members)
        arrays = {"prediction": prediction.predict()} | {name: getattr(prediction, name) for name in OUTPUTS}
        outputs = [NumpyCodec.encode_output(name, array) for name, array in arrays.items()]
        return InferenceResponse(model_name=self.name, model_version=self.version, id=payload.id, outputs=outputs)
