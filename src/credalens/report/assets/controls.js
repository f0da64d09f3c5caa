"use strict";
/* What needs no charts, alive before they are read: theme, sorting, legends, slider, folds, single inputs. */
const report = {
  all: (query, root = document) => [...root.querySelectorAll(query)],
  one: (query, root = document) => root.querySelector(query),
  state: { hidden: new Set(), axis: null, score: null, place: null },
  changed: () => {},  // charts follow the state, a part of which has changed
  added: () => {},  // charts of a part that is new in the page are drawn too
};
(() => {
  const { all, one, state } = report, root = document.documentElement;
  report.live = JSON.parse(one("#live").textContent);

  /* What stands in a noscript is text until it is asked for, so that the page opens sooner. */
  const write = (node) => { const text = one(":scope > noscript", node); if (text) text.outerHTML = text.textContent; };
  document.addEventListener("toggle", ({ target }) => write(target), { capture: true });

  /* Light and dark: the reader's choice, or the system's until there is one. */
  const toggle = one("#theme");
  const stored = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
                   set: (name) => { try { localStorage.setItem("theme", name); } catch { /* a file may not store */ } } };
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { toggle.textContent = dark() ? "Light" : "Dark"; toggle.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`); };
  if (["light", "dark"].includes(stored.get())) root.dataset.theme = stored.get();
  toggle.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; stored.set(root.dataset.theme); label(); });
  toggle.hidden = false;
  label();

  /* The false-alarm rate: every sentence, cell and line that depends on it. */
  const slider = one(".slider");
  const setRate = () => {
    state.place = Number(one("input", slider).value);
    const texts = report.live[state.place].texts;
    for (const node of all("[data-live]")) {
      const text = texts[node.dataset.live];
      if (text === undefined) continue;
      node.textContent = text;
      if (node.matches("td")) node.dataset.value = Number.parseFloat(text.replaceAll(",", ""));
    }
    for (const node of all("[data-bar]")) {
      const [x, width] = report.live[state.place].bars[node.dataset.bar];
      node.setAttribute("x", x);
      node.setAttribute("width", width);
    }
    one("input", slider).setAttribute("aria-valuetext", texts.rate);
    report.changed("place");
  };
  if (slider) { slider.hidden = false; one("input", slider).addEventListener("input", setRate); }

  /* Choices that hold for all charts: series on and off, the axis of false alarms, the score of the histograms. */
  const boxes = all("input[data-series]");
  boxes.forEach((box) => { box.disabled = false; box.addEventListener("change", () => {
    const name = box.dataset.series;
    state.hidden[box.checked ? "delete" : "add"](name);
    boxes.filter((other) => other.dataset.series === name).forEach((other) => { other.checked = box.checked; });
    all("tr[data-score]").forEach((row) => row.classList.toggle("off", state.hidden.has(row.dataset.score)));
    report.changed("hidden");
  }); });
  for (const choice of all("fieldset.choice")) {
    choice.hidden = false;
    choice.addEventListener("change", () => {
      state[choice.dataset.choice] = one("input:checked", choice).value;
      report.changed(choice.dataset.choice);
    });
  }

  /* Sorting: numbers by value, text by the alphabet, empty cells last, equal ones in their order. */
  const key = (row, column) => row.cells[column].dataset.value;
  const compare = (a, b, sign) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const numbers = [Number(a), Number(b)];
    return sign * (numbers.some(Number.isNaN) ? a.localeCompare(b, "en", { numeric: true }) : numbers[0] - numbers[1]);
  };
  document.addEventListener("click", ({ target }) => {
    const head = target.closest("table.sortable thead button")?.parentNode;
    if (!head) return;
    const table = head.closest("table"), column = head.cellIndex, body = table.tBodies[0];
    const rising = head.getAttribute("aria-sort") === "descending" || (head.classList.contains("text") && !head.hasAttribute("aria-sort"));
    all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    table.classList.add("sorted");
    body.append(...[...body.rows].sort((a, b) => compare(key(a, column), key(b, column), rising ? 1 : -1)));
    table.dispatchEvent(new Event("sorted"));
  });

  /* Folds: on a narrow screen every part but the first ones is its heading until it is asked for; paper shows everything. */
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (const fold of [one(":scope > details.part", target), target.closest("details.part")]) if (fold) fold.open = true;
    target.scrollIntoView();
  };
  const narrow = matchMedia("(max-width: 40rem)").matches;
  if (narrow) {
    for (const section of all("section[data-folds]")) {
      const fold = document.createElement("details"), summary = document.createElement("summary");
      fold.className = "part";
      summary.append(one("h2", section));
      fold.append(summary, ...section.childNodes);
      section.append(fold);
    }
    addEventListener("hashchange", unfold);
    one("nav").addEventListener("click", (event) => { if (event.target.hash === location.hash) unfold(); });
  }
  addEventListener("beforeprint", () => all("details:not(.values)").forEach((fold) => { fold.open = true; }));

  /* Single inputs: filter the list, show the one that is pointed at, keep the one that is clicked. */
  const MOST = 12, rows = all("#samples tbody tr"), details = all("#details > *"), filters = one(".filters"), more = one("#more");
  const linked = /^#sample-(\d+)$/.exec(location.hash);
  let kept = null;
  const choose = (number) => {
    rows.forEach((row) => row.setAttribute("aria-selected", String(row.dataset.sample === String(number))));
    details.forEach((detail) => { detail.hidden = detail.id !== `sample-${number}`; if (!detail.hidden) { write(detail); report.added(detail); } });
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
  const wanted = (row) => all("select", filters).every(({ value, dataset }) => value === "" || (dataset.filter === "set" ? row.dataset.set === value : row.dataset.groups.split(" ").includes(value)));
  const list = (whole) => {
    const left = all("#samples tbody tr").filter(wanted), shown = new Set(whole ? left : left.slice(0, MOST));
    rows.forEach((row) => { row.hidden = !shown.has(row); });
    more.hidden = shown.size === left.length;
    more.textContent = `Show all ${left.length}`;
    one("#shown").textContent = `${left.length} of ${rows.length} inputs`;
    return left;
  };
  const filter = () => { const [first] = list(false); if (first) choose((kept = first.dataset.sample)); };
  if (filters) {
    one("#samples tbody").addEventListener("pointerleave", () => { if (kept !== null) choose(kept); });
    filters.hidden = false;
    filters.addEventListener("change", filter);
    one("#samples").addEventListener("sorted", () => list(more.hidden));
    more.addEventListener("click", () => list(true));
    addEventListener("beforeprint", () => list(true));
    filter();
    if (linked) choose((kept = linked[1]));
  }
  /* What is out of sight is laid out when there is nothing else to do. */
  report.idle = (job) => addEventListener("load", () => requestAnimationFrame(() => (window.requestIdleCallback ?? setTimeout)(job)));
  report.idle(() => root.classList.remove("loading"));
  if (narrow || linked) unfold();
})();
