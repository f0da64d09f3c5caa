"""Every chart of an evaluation, declared once as Vega-Lite: the page shows them, and files are made of them."""
