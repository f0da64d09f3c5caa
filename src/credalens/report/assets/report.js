"use strict";
(() => {
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const one = (query, root = document) => root.querySelector(query);

  /* Light and dark: the reader's choice, or the system's until there is one. */
  const root = document.documentElement, toggle = one("#theme");
  const stored = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
                   set: (name) => { try { localStorage.setItem("theme", name); } catch { /* a file may not store */ } } };
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { toggle.textContent = dark() ? "Light" : "Dark"; toggle.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`); };
  if (["light", "dark"].includes(stored.get())) root.dataset.theme = stored.get();
  toggle.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; stored.set(root.dataset.theme); label(); });
  toggle.hidden = false;
  label();

  /* Sorting: numbers by value, text by the alphabet, empty cells last, equal ones in their order. */
  const key = (row, column) => row.cells[column].dataset.value;
  const compare = (a, b, sign) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const numbers = [Number(a), Number(b)];
    return sign * (numbers.some(Number.isNaN) ? a.localeCompare(b, "en", { numeric: true }) : numbers[0] - numbers[1]);
  };
  for (const table of all("table.sortable")) {
    const heads = all("thead th", table);
    heads.forEach((head, column) => one("button", head).addEventListener("click", () => {
      const rising = head.getAttribute("aria-sort") === "descending" || (head.classList.contains("text") && !head.hasAttribute("aria-sort"));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      table.classList.add("sorted");
      const body = one("tbody", table);
      body.append(...[...body.rows].sort((a, b) => compare(key(a, column), key(b, column), rising ? 1 : -1)));
    }));
  }

  /* Charts: drawn when they come into view, in the state that the reader chose. */
  const data = JSON.parse(one("#data").textContent), views = new Map();
  const state = { hidden: new Set(), axis: null, score: null, place: null };
  const shown = (value, unit) => unit === "%" ? `${(100 * value).toFixed(1)} %` : Number(value.toPrecision(3)).toString();
  const rowsOf = (columns) => {
    const names = Object.keys(columns);
    return (columns[names[0]] ?? []).map((_, n) => Object.fromEntries(names.filter((k) => columns[k][n] !== null).map((k) => [k, columns[k][n]])));
  };
  const setting = (params) => {
    const live = data.live[state.place], score = state.score ?? params.score;
    return { ...params, hidden: [...state.hidden], score, rate: live?.rate ?? params.rate, threshold: live?.thresholds[score] ?? params.threshold };
  };
  const specOf = ({ kind, height, params, rows }, width) => {
    const spec = structuredClone(data.specs[kind]), values = setting(params), axis = spec.usermeta.axes?.[state.axis];
    if (axis) spec.layer.forEach((layer) => { if (layer.encoding?.x?.scale) layer.encoding.x.scale = { nice: false, clamp: false, ...axis }; });
    const named = (spec.params ?? []).map((param) => ({ ...param, value: values[param.name] ?? null }));
    return { ...spec, width, height, params: named, datasets: { values: rows } };
  };
  const render = async (node) => {
    const chart = data.charts[node.dataset.chart], drawing = node.matches(".drawing") ? node : one(".drawing", node);
    chart.rows ??= rowsOf(chart.columns);
    const spec = specOf(chart, drawing.clientWidth), old = views.get(node);
    const { view } = await vegaEmbed(drawing, spec, { ast: true, actions: false, renderer: "svg", tooltip: false, defaultStyle: false });
    old?.view.finalize();
    const entry = { view, chart, drawing, meta: spec.usermeta, signals: new Set(spec.params.map((param) => param.name)), at: null };
    views.set(node, entry);
    drawing.removeAttribute("aria-hidden");
    node.dataset.ready = "";
    if (!old) listen(node);
  };
  const update = () => { for (const { view, chart, signals } of views.values()) {
    for (const [name, value] of Object.entries(setting(chart.params))) if (signals.has(name)) view.signal(name, value);
    view.runAsync();
  } };
  const watch = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => { watch.unobserve(target); render(target); }), { rootMargin: "200px" });
  all("[data-chart]").forEach((node) => watch.observe(node));
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
    entry.at = Math.min(Math.max(x, low), high);
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
    drawing.addEventListener("pointerleave", clear);
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
        readLines(node, entry, scale.invert(Math.min(Math.max(here + step * (right - left) / 40, left), right)));
      }
    });
  }

  /* Choices that hold for all charts: series on and off, the axis of false alarms, the score of the histograms. */
  const boxes = all("input[data-series]");
  boxes.forEach((box) => { box.disabled = false; box.addEventListener("change", () => {
    const name = box.dataset.series;
    state.hidden[box.checked ? "delete" : "add"](name);
    boxes.filter((other) => other.dataset.series === name).forEach((other) => { other.checked = box.checked; });
    all("tr[data-score]").forEach((row) => row.classList.toggle("off", state.hidden.has(row.dataset.score)));
    update();
  }); });
  for (const choice of all("fieldset.choice")) {
    choice.hidden = false;
    choice.addEventListener("change", () => {
      state[choice.dataset.choice] = one("input:checked", choice).value;
      if (choice.dataset.choice === "axis") [...views].filter(([, entry]) => entry.meta.axes).forEach(([node]) => render(node));
      else update();
    });
  }

  /* The false-alarm rate: every sentence, cell and line that depends on it. */
  const slider = one(".slider");
  const setRate = () => {
    state.place = Number(one("input", slider).value);
    const texts = data.live[state.place].texts;
    for (const node of all("[data-live]")) {
      const text = texts[node.dataset.live];
      if (text === undefined) continue;
      node.textContent = text;
      if (node.matches("td")) node.dataset.value = Number.parseFloat(text.replaceAll(",", ""));
    }
    one("input", slider).setAttribute("aria-valuetext", texts.rate);
    update();
  };
  if (slider) { slider.hidden = false; one("input", slider).addEventListener("input", setRate); }

  /* Paper shows everything; without a printer folds stay as they are. */
  addEventListener("beforeprint", () => all("details:not(.values)").forEach((fold) => { fold.open = true; }));

  /* Single inputs: filter the list, show the one that is pointed at, keep the one that is clicked. */
  if (!one("#samples")) return;
  const rows = all("#samples tbody tr"), details = all("#details > *");
  let kept = null;
  const choose = (number) => {
    rows.forEach((row) => row.setAttribute("aria-selected", String(row.dataset.sample === String(number))));
    details.forEach((detail) => { detail.hidden = detail.id !== `sample-${number}`; });
  };
  for (const row of rows) {
    const number = row.dataset.sample;
    row.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") choose(number); });
    row.addEventListener("focusin", () => choose(number));
    row.addEventListener("click", (event) => {
      event.preventDefault();
      kept = number;
      choose(number);
      if (!matchMedia("(min-width: 60rem)").matches) one(`#sample-${number}`).scrollIntoView({ block: "start" });
    });
  }
  one("#samples tbody").addEventListener("pointerleave", () => { if (kept !== null) choose(kept); });
  const filters = one(".filters"), selects = all("select", filters);
  const filter = () => {
    rows.forEach((row) => { row.hidden = selects.some((s) => s.value !== "" && (s.dataset.filter === "set" ? row.dataset.set !== s.value : !row.dataset.groups.split(" ").includes(s.value))); });
    const left = rows.filter((row) => !row.hidden);
    one("#shown").textContent = `${left.length} of ${rows.length} inputs`;
    if (left.length) choose((kept = left[0].dataset.sample));
  };
  filters.hidden = false;
  filters.addEventListener("change", filter);
  filter();
  const linked = /^#sample-(\d+)$/.exec(location.hash);
  if (linked) { choose((kept = linked[1])); one(`[data-sample="${kept}"]`).scrollIntoView({ block: "nearest" }); one("#inputs").scrollIntoView(); }
})();
