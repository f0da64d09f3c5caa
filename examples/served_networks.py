"""
Networks behind a server
========================

A server answers over HTTP by the Open Inference Protocol v2, with a guard that abstains on what the networks do not know.
Here five small networks read digits; strangers come too: letters, pieces of photos, and textures.
"""

import http.client
import json
import threading
import time

import matplotlib.pyplot as plt
import numpy as np
import uvicorn

from credalens.demo import digits, ood_images
from credalens.guard import Guard
from credalens.serve import app
from credalens.sklearn import CredalClassifier

data = digits.load()
networks = digits.train(data, epochs=10, report=lambda done, count: None)
classifier = CredalClassifier.from_fitted(networks)

# %%
# Half of the test digits calibrate the guard: at most 10 % of such digits are turned away. The server is an ASGI
# application that any ASGI server runs; ``credalens serve a.onnx b.onnx --guard guard.json`` does the same for files.
calibration, known = np.split(data.test_images.reshape(-1, 64), [450])
guard = Guard.fit(classifier.credal_predict(calibration), false_alarm_rate=0.1, note="five networks")
server = uvicorn.Server(uvicorn.Config(app(classifier, guard, name="digits"), port=0, log_level="warning"))
thread = threading.Thread(target=server.run, daemon=True)
thread.start()
while not server.started:
    time.sleep(0.01)
port = server.servers[0].sockets[0].getsockname()[1]

# %%
# A client needs nothing of credalens. It names the outputs that it wants.
connection = http.client.HTTPConnection("127.0.0.1", port)


def ask(images):
    """The outputs for some images by name."""
    tensor = {"name": "input", "datatype": "FP64", "shape": list(images.shape), "data": images.ravel().tolist()}
    names = ("prediction", "decision", "p_value", "epistemic", "total")
    request = {"inputs": [tensor], "outputs": [{"name": name} for name in names]}
    connection.request("POST", "/v2/models/digits/infer", json.dumps(request))
    answer = json.loads(connection.getresponse().read())
    return {output["name"]: np.array(output["data"]) for output in answer["outputs"]}


first = ask(known[:1])
print(f"one digit: {first['prediction'][0]}, {first['decision'][0]}, p-value {first['p_value'][0]:.2f}")

# %%
# Digits are accepted, strangers are mostly not.
rng = np.random.default_rng(0)
makers = {"letters": ood_images.letters, "photos": ood_images.photos, "textures": ood_images.textures}
strangers = {name: make(150, rng).reshape(-1, 64) for name, make in makers.items()}
answers = {name: ask(images) for name, images in {"digits": known, **strangers}.items()}
for name, answer in answers.items():
    accepted = (answer["decision"] == "accept").mean()
    print(f"{name:<9} {accepted:4.0%} accepted; epistemic uncertainty {answer['epistemic'].mean():.2f} bits on average")

connection.close()
server.should_exit = True
thread.join()

figure, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
axes.boxplot([answer["total"] for answer in answers.values()])
axes.set_xticks(range(1, len(answers) + 1), labels=list(answers))
axes.axhline(guard.threshold, color="black", linestyle=":", label="above it the guard abstains")
axes.set(ylabel="total uncertainty (bits)")
axes.legend(frameon=False)
plt.show()
