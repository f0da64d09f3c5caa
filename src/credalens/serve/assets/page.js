"use strict";
const $ = (id) => document.getElementById(id);
const HEIGHT = 190, LEFT = 46, RIGHT = 12, TOP = 10, BOTTOM = 24, POLL = 5000;
let token = "", points = [], about = {}, drawn = [];

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "rect", "g"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Numbers

const digits = (x, most = 3) => Number(x.toPrecision(most)).toLocaleString("en", { maximumSignificantDigits: most });
const percent = (part, whole) => (whole ? `${(100 * part / whole).toFixed(1)} %` : "–");
const whole = (x) => Math.round(x).toLocaleString("en");
const number = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
const shown = (x, unit) => (x === null ? "–" : `${digits(x)}${unit}`);

const base10 = (log) => (log === undefined ? null : log / Math.LN10);

function difference(from, to) {
  const of = (name) => Math.max(0, (to[name] ?? 0) - (from[name] ?? 0));
  const seconds = to.time - from.time, rows = of("total_count");
  const mean = (name) => (of(`${name}_count`) ? of(`${name}_sum`) / of(`${name}_count`) : null);
  return {
    time: to.time, seconds, rows, requests: of("status_2xx"), failed: of("status_4xx") + of("status_5xx") + of("busy"),
    accepted: of("accept"), offered: of("offer"), abstained: of("abstain"),
    total: mean("total"), epistemic: mean("epistemic"), batch: mean("batch_rows"), waiting: mean("queue_requests"),
    middle: quantile(from, to, 0.5), slowest: quantile(from, to, 0.95),
    drift: base10(to.drift_log_value), bound: base10(to.drift_log_bound), alarm: to.drift_alarm === 1,
  };
}

function quantile(from, to, share) {  // milliseconds, by a straight line within the bucket
  const buckets = Object.keys(to).filter((name) => name.startsWith("within_"))
    .map((name) => [name === "within_+Inf" ? Infinity : Number(name.slice(7)), to[name] - (from[name] ?? 0)])
    .sort((a, b) => a[0] - b[0]);
  const count = buckets.length ? buckets.at(-1)[1] : 0;
  if (!count) return null;
  let low = 0, below = 0;
  for (const [bound, number] of buckets) {
    if (number >= share * count) {
      return 1000 * (bound === Infinity ? low : low + (bound - low) * (share * count - below) / (number - below));
    }
    [low, below] = [bound, number];
  }
  return null;
}

// Charts: a series has a name, a class for its colours, and a value at each point

const rate = (name) => (point) => point[name] / point.seconds;
const power = (x) => (x < 5 ? digits(10 ** x) : `10${[...String(Math.round(x))].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`);
const CHARTS = [
  { title: "Decisions", unit: "rows/s", stacked: true, when: () => about.guarded, series: [
    ["accepted", "accepted", rate("accepted")], ["offered", "offered", rate("offered"), () => about.sets],
    ["abstained", "abstained", rate("abstained")]] },
  { title: "Rows", unit: "rows/s", stacked: true, when: () => !about.guarded, series: [["predicted", "accepted", rate("rows")]] },
  { title: "Uncertainty", unit: "mean of the rows", series: [
    ["total", "total", (p) => p.total], ["epistemic", "epistemic", (p) => p.epistemic]] },
  { title: "Drift", unit: "log₁₀ of the evidence", low: 0, when: () => about.drift, series: [
    ["evidence", "value", (p) => p.drift], ["alarm", "bound", (p) => p.bound]] },
  { title: "Answering time", unit: "ms", low: 0, series: [
    ["half within", "middle", (p) => p.middle], ["95 % within", "slowest", (p) => p.slowest]] },
  { title: "Requests", unit: "requests/s", stacked: true, series: [
    ["answered", "accepted", rate("requests")], ["refused", "refused", rate("failed")]] },
  { title: "Batches", unit: "mean", series: [["rows in a batch", "batch", (p) => p.batch], ["requests waiting", "waiting", (p) => p.waiting]] },
];

function ticks(low, high) {
  const step = 10 ** Math.floor(Math.log10((high - low) / 2 || 1));
  const size = [1, 2, 5, 10].map((k) => k * step).find((k) => (high - low) / k <= 4.5);
  const found = [];
  for (let x = Math.ceil(low / size - 1e-9) * size; x <= high + 1e-9 * size; x += size) found.push(Number(x.toPrecision(12)));
  return found;
}

function build(chart) {
  chart.series = chart.series.filter(([, , , when]) => !when || when());
  const drawing = element("div", { class: "drawing" });
  const readout = element("div", { class: "readout" });
  const legend = element("ul", { class: "legend" });
  for (const [name, kind] of chart.series) {
    const key = element("svg", { viewBox: "0 0 30 12", "aria-hidden": "true" });
    key.append(chart.stacked ? element("rect", { class: `area ${kind}`, x: 4, width: 22, height: 12, rx: 2 })
      : element("path", { class: `line ${kind}`, d: "M1 6H29" }));
    legend.append(element("li", {}, key, name));
  }
  const caption = element("figcaption", {}, `${chart.title} `, element("span", {}, chart.unit));
  const figure = element("figure", { role: "group", "aria-label": chart.title }, caption, legend, drawing, readout);
  drawing.addEventListener("pointermove", (event) => read(chart, event.clientX));
  drawing.addEventListener("pointerleave", () => read(chart, null));
  return Object.assign(chart, { figure, drawing, readout });
}

function draw(chart) {
  const width = Math.max(240, chart.drawing.clientWidth);
  const values = points.map((point) => chart.series.map(([, , value]) => value(point) ?? null));
  const heights = chart.stacked ? values.map((row) => row.reduce((a, b) => a + b, 0)) : values.flat().filter((x) => x !== null);
  const low = Math.min(0, ...heights, chart.low ?? 0), high = Math.max(...heights, low) > low ? Math.max(...heights) : low + 1;
  const end = points.at(-1).time, start = Math.min(points[0].time - points[0].seconds, end - 60);
  const x = (time) => LEFT + (width - LEFT - RIGHT) * (time - start) / (end - start);
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low);
  const svg = element("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": summary(chart) });
  for (const tick of ticks(low, high)) {
    svg.append(element("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }));
    svg.append(element("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, tick.toLocaleString("en")));
  }
  for (const tick of ticks(0, (end - start) / 60)) {
    const words = !tick ? "now" : end - start < 180 ? `${60 * tick} s ago` : `${tick} min ago`, place = x(end - 60 * tick);
    if (place > LEFT + 20) svg.append(element("text", { x: Math.min(place, width - RIGHT), y: HEIGHT - 6, "text-anchor": tick ? "middle" : "end" }, words));
  }
  svg.append(...(chart.stacked ? areas(chart, values, x, y) : lines(chart, values, x, y)));
  chart.x = x;
  chart.drawing.replaceChildren(svg);
}

function areas(chart, values, x, y) {  // an interval is as wide as it took
  const under = points.map(() => 0);
  return chart.series.map(([, kind], n) => {
    let path = "";
    points.forEach((point, k) => {
      const [from, to] = [x(point.time - point.seconds), x(point.time)];
      if (values[k][n] > 0) path += `M${from} ${y(under[k])}H${to}V${y(under[k] + values[k][n])}H${from}Z`;
      under[k] += values[k][n];
    });
    return element("path", { class: `area ${kind}`, d: path });
  });
}

function lines(chart, values, x, y) {
  return chart.series.map(([, kind], n) => {
    let path = "", last = null;
    points.forEach((point, k) => {
      const value = values[k][n];
      if (value !== null) path += last === null ? `M${x(point.time - point.seconds)} ${y(value)}H${x(point.time)}` : `L${x(point.time)} ${y(value)}`;
      last = value;
    });
    return element("path", { class: `line ${kind}`, d: path });
  });
}

const told = (chart, point) => chart.series.map(([name, , value]) => `${name} ${shown(value(point) ?? null, "")}`).join(", ");
const summary = (chart) => `${chart.title}, ${chart.unit}: ${told(chart, points.at(-1))}`;

function read(chart, clientX) {
  chart.drawing.querySelector(".cursor")?.remove();
  chart.readout.textContent = "";
  if (clientX === null || !points.length || !chart.x) return;
  const at = clientX - chart.drawing.getBoundingClientRect().left;
  const point = points.reduce((a, b) => (Math.abs(chart.x(b.time) - at) < Math.abs(chart.x(a.time) - at) ? b : a));
  const place = chart.x(point.time);
  chart.drawing.firstChild.append(element("line", { class: "cursor", x1: place, x2: place, y1: TOP, y2: HEIGHT - BOTTOM }));
  chart.readout.textContent = `${new Date(1000 * point.time).toLocaleTimeString("en-GB")}: ${told(chart, point)}`;
}

// The page

function facts(all) {
  const found = about.guarded ? [["Accepted", percent(all.accepted, all.rows)], ["Abstained", percent(all.abstained, all.rows)]] : [];
  if (all.offered) found.push(["Offered a set", percent(all.offered, all.rows)]);
  found.push(["Total uncertainty", shown(all.total, "")], ["Epistemic uncertainty", shown(all.epistemic, "")]);
  if (about.drift) found.push(["Evidence of drift", ...(all.bound === null ? ["–"] : [power(all.drift), `alarm at ${power(all.bound)}`])]);
  found.push(["95 % answered within", shown(all.slowest, ""), "ms"], ["Rows in a batch", shown(all.batch, "")], ["Requests waiting", shown(all.waiting, "")]);
  return found;
}

function headline(all) {
  const minutes = Math.max(1, Math.round(all.seconds / 60));
  const span = minutes === 1 ? "In the last minute" : `In the last ${minutes} minutes`;
  if (!all.rows && !all.failed) return `${span}: no requests.`;
  const decided = about.guarded ? `: ${percent(all.accepted, all.rows)} accepted, ${percent(all.abstained, all.rows)} abstained` : "";
  const refused = all.failed ? ` ${number(all.failed, "request")} refused.` : "";
  return `${span} ${number(all.rows, "row")} in ${number(all.requests, "request")}${decided}.${refused}`;
}

function show(data) {
  about = data;
  const samples = data.samples;
  points = samples.slice(1).map((sample, n) => difference(samples[n], sample)).filter((point) => point.seconds > 0);
  if (!points.length) return;
  const all = difference(samples[0], samples.at(-1));
  $("about").textContent = (data.models.map(([name, version]) => `Model ${name}, version ${version}`).join("; ") || "No request yet")
    + (data.workers > 1 ? ` · all ${data.workers} workers together; drift is the highest of them` : "");
  $("headline").textContent = headline(all);
  $("alarm").hidden = !all.alarm;
  $("facts").replaceChildren(...facts(all).map(([name, value, more]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value, more ? element("small", {}, ` ${more}`) : ""))));
  const wanted = CHARTS.filter((chart) => !chart.when || chart.when());
  if (wanted.length !== drawn.length) {
    drawn = wanted.map(build);
    $("charts").replaceChildren(...drawn.map((chart) => chart.figure));
  }
  drawn.forEach(draw);
  $("foot").textContent = `Updated ${new Date(1000 * all.time).toLocaleTimeString("en-GB")}. The same numbers, for Prometheus: /metrics.`;
  document.documentElement.dataset.ready = samples.length;
}

async function refresh() {
  try {
    const answer = await fetch("recent", { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store" });
    $("access").hidden = answer.status !== 401;
    if (answer.ok) show(await answer.json());
    else $("headline").textContent = answer.status === 401 ? "" : `The server answers ${answer.status}.`;
  } catch {
    $("headline").textContent = "The server does not answer.";
  }
}

$("access").addEventListener("submit", (event) => { event.preventDefault(); token = $("token").value; refresh(); });
const dark = () => document.documentElement.dataset.theme === "dark"
  || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
const label = () => { $("theme").textContent = dark() ? "Light" : "Dark"; };
$("theme").addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; label(); });
addEventListener("resize", () => { if (points.length) drawn.forEach(draw); });
label();
refresh();
setInterval(refresh, POLL);
