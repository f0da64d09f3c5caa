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

  /* Charts that can be read off, by mouse, touch, or the arrow keys. */
  const shown = (value, unit) => unit === "%" ? `${(100 * value).toFixed(1)} %` : Number(value.toPrecision(3)).toString();
  for (const chart of all("svg.plot[data-x]")) {
    const lines = all("polyline[data-name]", chart).reverse();
    if (!lines.length) continue;
    const [x0, x1, left, right] = chart.dataset.x.split(" ").map(Number);
    const [y0, y1, bottom, top] = chart.dataset.y.split(" ").map(Number);
    const series = lines.map((line) => ({ name: line.dataset.name, points: line.getAttribute("points").split(" ").map((p) => p.split(",").map(Number)) }));
    const cursor = document.createElementNS(chart.namespaceURI, "line");
    cursor.setAttribute("class", "cursor");
    const readout = document.createElement("p");
    readout.className = "readout";
    chart.after(readout);
    const at = (points, x) => {
      const place = points.findIndex((p) => p[0] >= x);
      if (place <= 0) return points[place === 0 ? 0 : points.length - 1][1];
      const [a, b] = [points[place - 1], points[place]];
      return b[0] === a[0] ? b[1] : a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]);
    };
    let here = null;
    const show = (x) => {
      here = Math.min(Math.max(x, left), right);
      const value = x0 + (here - left) / (right - left) * (x1 - x0);
      const read = (y) => { const up = (y - bottom) / (top - bottom); return y0 + (chart.hasAttribute("data-root") ? up * up : up) * (y1 - y0); };
      const parts = series.map((s) => `${s.name} ${shown(read(at(s.points, here)), chart.dataset.yunit)}`);
      readout.textContent = `At ${shown(value, chart.dataset.xunit)}: ${parts.join("; ")}`;
      for (const [name, number] of Object.entries({ x1: here, x2: here, y1: bottom, y2: top })) cursor.setAttribute(name, number);
      if (!cursor.parentNode) chart.append(cursor);
    };
    const clear = () => { cursor.remove(); readout.textContent = ""; here = null; };
    chart.addEventListener("pointermove", (event) => { const box = chart.getBoundingClientRect(); show((event.clientX - box.left) / box.width * chart.viewBox.baseVal.width); });
    chart.addEventListener("pointerleave", clear);
    chart.addEventListener("blur", clear);
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("focus", () => { if (here === null && chart.matches(":focus-visible")) { show((left + right) / 2); readout.setAttribute("aria-live", "polite"); } });
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      show((here ?? left) + step * (right - left) / 40);
    });
  }

  /* Which kind of histogram is shown. */
  for (const choice of all("fieldset.choice")) {
    const cards = all(`[data-filter="${choice.dataset.for}"] > *`);
    const apply = () => { const wanted = one("input:checked", choice).value; cards.forEach((card) => { card.hidden = wanted !== "" && card.dataset.kind !== wanted; }); };
    choice.addEventListener("change", apply);
    apply();
  }

  /* The false-alarm rate. */
  const slider = one(".slider"), tables = all("#rates > *");
  const setRate = () => {
    const place = Number(one("input", slider).value);
    tables.forEach((table, number) => { table.hidden = number !== place; });
    one("output", slider).textContent = tables[place].dataset.rate;
    one("input", slider).setAttribute("aria-valuetext", tables[place].dataset.rate);
  };
  slider.hidden = false;
  one("input", slider).addEventListener("input", setRate);
  setRate();

  /* Single inputs: filter the list, show the one that is pointed at, keep the one that is clicked. */
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
