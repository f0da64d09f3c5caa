"use strict";
/* Charts: drawn when they come near, the nearest first, in the state that the reader chose. */
(() => {
  const { all, one, state, live } = report, data = JSON.parse(one("#charts").textContent), views = new Map();
  const shown = (value, unit) => unit === "%" ? `${(100 * value).toFixed(1)} %` : Number(value.toPrecision(3)).toString();
  const rowsOf = (columns) => {
    const lists = Object.entries(columns).map(([name, column]) => [name, Array.isArray(column) ? column : column.at.map((place) => column.of[place])]);
    return (lists[0]?.[1] ?? []).map((_, n) => ({ n, ...Object.fromEntries(lists.filter(([, list]) => list[n] !== null).map(([name, list]) => [name, list[n]])) }));
  };
  const setting = (params) => {
    const at = live[state.place], score = state.score ?? params.score;
    return { ...params, hidden: [...state.hidden], score, rate: at?.rate ?? params.rate, threshold: at?.thresholds[score] ?? params.threshold };
  };
  const specOf = ({ kind, height, params, rows }, width) => {
    const spec = structuredClone(data.specs[kind]), values = setting(params), axis = spec.usermeta.axes?.[state.axis];
    if (axis) spec.layer.forEach((layer) => { if (layer.encoding?.x?.scale) layer.encoding.x.scale = { nice: false, clamp: false, ...axis }; });
    const named = (spec.params ?? []).map((param) => ({ ...param, value: values[param.name] ?? null }));
    return { ...spec, width, height: Math.round(height * width / spec.width), params: named, datasets: { values: rows } };  // as its picture
  };
  /* The library is text until a chart needs it, or until there is nothing else to do. */
  const library = () => {
    if (!window.vegaEmbed) document.head.append(Object.assign(document.createElement("script"), { textContent: one("#library").textContent }));
  };
  const render = async (node) => {
    const chart = data.charts[node.dataset.chart], drawing = node.matches(".drawing") ? node : one(".drawing", node);
    const old = views.get(node), width = drawing.clientWidth || old?.view.width();
    if (!width) { watch.observe(node); return; }  // hidden before its turn came
    chart.rows ??= rowsOf(chart.columns);
    const spec = specOf(chart, width);
    const { view } = await vegaEmbed(drawing, spec, { ast: true, actions: false, renderer: "svg", tooltip: false, defaultStyle: false });
    old?.view.finalize();
    const entry = { view, chart, drawing, meta: spec.usermeta, signals: new Set(spec.params.map((param) => param.name)), at: null };
    views.set(node, entry);
    drawing.removeAttribute("aria-hidden");
    node.dataset.ready = "";
    if (!old) listen(node);
  };
  report.changed = (part) => {
    if (part === "axis") { [...views].filter(([, entry]) => entry.meta.axes).forEach(([node]) => render(node)); return; }
    for (const { view, chart, signals } of views.values()) {
      for (const [name, value] of Object.entries(setting(chart.params))) if (signals.has(name)) view.signal(name, value);
      view.runAsync();
    }
  };
  const waiting = new Set();
  let busy = false;
  const away = (node) => { const box = node.getBoundingClientRect(); return Math.max(0, box.top - innerHeight, -box.bottom); };
  const draw = async () => {
    if (busy) return;
    busy = true;
    try {
      library();
      while (waiting.size) {
        const [node] = [...waiting].sort((a, b) => away(a) - away(b));
        waiting.delete(node);
        await render(node);
        await new Promise((resume) => { setTimeout(resume); });  // clicks and keys come first
      }
    } finally { busy = false; }
  };
  const watch = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => { watch.unobserve(target); waiting.add(target); });
    if (waiting.size) draw();
  }, { rootMargin: "200px" });
  report.added = (part) => all("[data-chart]:not([data-ready])", part).forEach((node) => watch.observe(node));
  report.added(document);
  report.idle(library);
  const resized = new ResizeObserver((entries) => entries.forEach(({ target, contentRect }) => {
    const entry = views.get(target.closest("[data-chart]")), width = Math.floor(contentRect.width);
    if (entry && width > 40 && Math.abs(entry.view.width() - width) > 2 && Math.abs((entry.asked ?? 0) - width) > 2) { entry.asked = width; entry.view.width(width).runAsync(); }
  }));

  /* Reading off: what lies under the pointer, or where the arrow keys went. */
  const seriesRows = ({ chart, view, signals }, name) => chart.rows.filter((row) => row.series === name && (!signals.has("score") || row.score === view.signal("score")));
  const valueAt = (rows, x, kind) => {
    const after = rows.findIndex((row) => row.x > x), before = rows[(after < 0 ? rows.length : after) - 1], next = rows[after];
    if (!before) return next?.y;
    if (!next || kind === "bin") return before.y;
    return kind === "step" ? next.y : next.x === before.x ? next.y : before.y + (next.y - before.y) * (x - before.x) / (next.x - before.x);
  };
  const say = (node, entry, text, left) => {
    one(".readout", node).textContent = text;
    const cursor = one(".cursor", entry.drawing) ?? entry.drawing.appendChild(Object.assign(document.createElement("i"), { className: "cursor" }));
    cursor.hidden = left === null;
    if (left !== null) Object.assign(cursor.style, { left: `${left}px`, top: `${entry.view.origin()[1]}px`, height: `${entry.view.signal("height")}px` });
  };
  const readLines = (node, entry, x) => {
    const { meta, view } = entry, [low, high] = view.scale("x").domain();
    entry.at = Math.min(Math.max(meta.whole ? Math.round(x) : x, low), high);
    const parts = Object.entries(meta.names).filter(([name]) => !state.hidden.has(name)).map(([name, label]) => [label, valueAt(seriesRows(entry, name), entry.at, meta.kind)]);
    const read = parts.filter(([, y]) => y !== undefined).map(([label, y]) => `${label} ${shown(y, meta.y)}`);
    say(node, entry, `${meta.at} ${shown(entry.at, meta.x)}: ${read.join("; ")}`.trim(), view.origin()[0] + view.scale("x")(entry.at));
  };
  const items = (entry) => entry.chart.rows.filter((row) => row.text && !state.hidden.has(row.series));
  const placeOf = ({ view }, row) => {
    const y = view.scale("y"), named = row.y ?? row.label ?? row.name;
    return { x: view.origin()[0] + view.scale("x")(row.x), y: view.origin()[1] + y(named) + (y.bandwidth ? y.bandwidth() / 2 : 0), band: !!y.bandwidth };
  };
  const readItem = (node, entry, n) => {
    const list = items(entry);
    if (!list.length) return;
    entry.at = Math.min(Math.max(n, 0), list.length - 1);
    say(node, entry, list[entry.at].text, null);
  };
  const nearest = (entry, x, y) => {
    const far = items(entry).map((row) => { const at = placeOf(entry, row); return Math.hypot(at.band ? 0 : at.x - x, at.y - y); });
    return far.indexOf(Math.min(...far));
  };
  const zoom = ({ view, at }, factor) => {
    try { view.signal("zoom_x"); } catch { return; }  // a chart that does not zoom
    const scale = view.scale("x"), log = scale.type === "log", [a, b] = scale.domain().map((v) => log ? Math.log(v) : v);
    const middle = typeof at === "number" ? (log ? Math.log(at) : at) : (a + b) / 2;
    view.signal("zoom_x", [a, b].map((v) => middle + (v - middle) * factor).map((v) => log ? Math.exp(v) : v));
    try { view.signal("zoom_y", view.scale("y").domain()); } catch { /* zooms across only */ }
    view.runAsync();
  };
  function listen(node) {
    const readout = one(".readout", node), kind = () => views.get(node).meta.kind;
    resized.observe(views.get(node).drawing);
    if (!readout || kind() === "none") return;
    const clear = () => { const entry = views.get(node); readout.textContent = ""; entry.at = null; one(".cursor", entry.drawing)?.remove(); };
    const point = (event) => {
      const entry = views.get(node), box = entry.drawing.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      if (kind() === "items") readItem(node, entry, nearest(entry, x, y));
      else readLines(node, entry, entry.view.scale("x").invert(x - entry.view.origin()[0]));
    };
    const drawing = views.get(node).drawing;
    drawing.addEventListener("pointermove", point);
    drawing.addEventListener("pointerdown", point);
    drawing.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") clear(); });  // a finger leaves what it read
    node.tabIndex = 0;
    node.addEventListener("blur", clear);
    node.addEventListener("keydown", (event) => {
      const entry = views.get(node), step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key], factor = { "+": 0.5, "-": 2, "0": 0 }[event.key];
      if (event.target !== node || (step === undefined && factor === undefined)) return;
      event.preventDefault();
      readout.setAttribute("aria-live", "polite");
      if (factor === 0) render(node);
      else if (factor) zoom(entry, factor);
      else if (kind() === "items") readItem(node, entry, (entry.at ?? (step > 0 ? -1 : items(entry).length)) + step);
      else {
        const scale = entry.view.scale("x"), [left, right] = scale.range(), here = entry.at === null ? (left + right) / 2 : scale(entry.at);
        if (entry.meta.whole) readLines(node, entry, Math.round(scale.invert(here)) + step);
        else readLines(node, entry, scale.invert(Math.min(Math.max(here + step * (right - left) / 40, left), right)));
      }
    });
  }
})();
