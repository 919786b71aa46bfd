/** The page: what is selected, found and coloured, and what keys, pointers and controls do about it. */

const N_OPEN = 49; // merges that are open at first, as in `Hierarchy.plot`
const N_LISTED = 20; // clusters in the table
const N_KEYS = 8; // of a cluster, in the details
const N_STEPS = 8; // of the path to the root, in the details
const MAX_CUT = 50; // the end of the slider; the field beside it goes on to the number of points
const MAX_PIXELS = 8e6; // browsers cannot scroll through more; where rows need more, scrolling is faster than the rows
const TYPING = 120; // milliseconds without a key after which a search begins
const THEMES = ["(prefers-color-scheme: dark)", "(forced-colors: active)"].map((query) => window.matchMedia(query));

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const tree = new Tree(data);
const outline = new Outline(tree, N_OPEN);
const colours = new Colours(data.palette);
const drawing = new Drawing(outline, colours, $("canvas"), $("rows"));

/** What a search found: leaves in the order of the picture. */
const hits = {
  leaves: new Int32Array(0),
  at: -1,
  text: "",

  /** How many are below a node, by two binary searches. */
  below(u) {
    return this.before(tree.start[u] + tree.size[u]) - this.before(tree.start[u]);
  },

  before(place) {
    let low = 0, high = this.leaves.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tree.start[this.leaves[middle]] < place) low = middle + 1;
      else high = middle;
    }
    return low;
  },
};

const state = { selected: tree.root, clusters: null, hits };

/* Scrolling and drawing. */

const rowPixels = () => outline.nRows * ROW;
const viewPixels = () => Math.max($("tree").clientHeight - AXIS, ROW);

/** How many pixels of rows are above the view. */
function offset() {
  const range = Math.max(rowPixels() - viewPixels(), 0);
  const scrollable = $("tree").scrollHeight - $("tree").clientHeight;
  return scrollable > 0 ? ($("tree").scrollTop / scrollable) * range : 0;
}

function scrollToOffset(wanted) {
  const range = Math.max(rowPixels() - viewPixels(), 1);
  const scrollable = $("tree").scrollHeight - $("tree").clientHeight;
  $("tree").scrollTop = (Math.min(Math.max(wanted, 0), range) / range) * scrollable;
}

let isDrawingDue = false;

function redraw() {
  if (isDrawingDue) return;
  isDrawingDue = true;
  requestAnimationFrame(draw);
}

function draw() {
  isDrawingDue = false;
  drawing.draw(offset(), state);
  $("tree").dataset.rows = outline.nRows; // for tests, and for whoever looks at the page with a program
}

function fit() {
  const box = $("tree");
  $("stage").style.height = `${box.clientHeight}px`;
  $("spacer").style.height = `${Math.min(Math.max(rowPixels() - viewPixels(), 0), MAX_PIXELS)}px`;
  drawing.resize(box.clientWidth, box.clientHeight);
  redraw();
}

/** After an action that moves rows: keep a node where it is on the screen. */
function keepInPlace(u, action) {
  const before = outline.isShown(u) ? outline.y[u] * ROW - offset() : null;
  action();
  select(outline.nearestShown(state.selected));
  fit();
  const anchor = outline.nearestShown(u);
  if (before !== null) scrollToOffset(outline.y[anchor] * ROW - Math.min(Math.max(before, 0), viewPixels() - ROW));
  redraw();
}

function scrollIntoView(u) {
  const y = outline.y[u] * ROW, above = offset();
  if (y - ROW / 2 < above) scrollToOffset(y - ROW);
  else if (y + ROW / 2 > above + viewPixels()) scrollToOffset(y + ROW - viewPixels());
}

/* Selection. */

function select(u) {
  state.selected = u;
  describe(u);
  announce(u);
  redraw();
}

/** Show a node wherever it is: open what hides it, and bring it to the middle. */
function goTo(u) {
  outline.reveal(u);
  fit();
  select(u);
  scrollToOffset(outline.y[u] * ROW - viewPixels() / 2);
  showZoom();
}

function titleOf(u) {
  return tree.isLeaf(u) ? shortText(tree.nameOf(u)) : counted(tree.size[u]);
}

/** A canvas says nothing to a screen reader: the selected node is there a second time, as an item of a tree. */
function announce(u) {
  const isLeaf = tree.isLeaf(u);
  const item = element("div", "unseen", `${titleOf(u)}, height ${shortNumber(tree.height[u])}, cluster ${clusterName(u)}`);
  item.id = `node-${u}`;
  item.setAttribute("role", "treeitem");
  item.setAttribute("aria-selected", "true");
  item.setAttribute("aria-level", tree.ancestors(u).length + 1);
  if (!isLeaf) item.setAttribute("aria-expanded", String(Boolean(outline.open[u])));
  const parent = tree.parent[u];
  item.setAttribute("aria-setsize", parent === NONE ? 1 : 2);
  item.setAttribute("aria-posinset", parent === NONE || tree.left[parent] === u ? 1 : 2);
  $("item-holder").replaceChildren(item);
  $("tree").setAttribute("aria-activedescendant", item.id);
}

function clusterName(u) {
  const cluster = state.clusters.of[u];
  return cluster === SEVERAL ? "several" : state.clusters.list[cluster].name;
}

function linkTo(u) {
  return button("link", titleOf(u), () => goTo(u));
}

function describe(u) {
  const list = element("dl");
  const add = (name, ...content) => {
    const value = element("dd");
    value.append(...content);
    list.append(element("dt", "", name), value);
  };
  if (tree.isLeaf(u)) add("Key", element("span", "key", tree.nameOf(u)));
  else add("Points", tree.size[u].toLocaleString("en-GB"));
  add("Height", shortNumber(tree.height[u]));
  add("Cluster", clusterName(u));
  const prototype = tree.prototypeOf(u);
  if (!tree.isLeaf(u) && prototype !== NONE) add("Prototype", linkTo(prototype));
  for (const column of data.columns) add(column.name, summarise(tree, column, u));
  if (!tree.isLeaf(u)) add("Keys", ...someKeys(u));
  add("Path", ...path(u));
  const hasFocus = $("details-body").contains(document.activeElement);
  $("details-body").replaceChildren(list, actions(u));
  if (hasFocus) $("tree").focus({ preventScroll: true }); // what had it is gone
}

function someKeys(u) {
  const leaves = tree.order.subarray(tree.start[u], tree.start[u] + Math.min(tree.size[u], N_KEYS));
  const parts = Array.from(leaves, linkTo).flatMap((key) => [key, " "]);
  return tree.size[u] > N_KEYS ? [...parts, `and ${(tree.size[u] - N_KEYS).toLocaleString("en-GB")} more`] : parts;
}

/** The clusters that a node is in, from the root down; of many, those at both ends. */
function path(u) {
  const above = tree.ancestors(u).reverse();
  if (above.length === 0) return ["the root"];
  const step = (v) => [linkTo(v), " › "];
  if (above.length <= N_STEPS) return above.flatMap(step).slice(0, -1);
  const half = N_STEPS / 2;
  return [...above.slice(0, half).flatMap(step), `… ${above.length - N_STEPS} more … › `, ...above.slice(-half).flatMap(step).slice(0, -1)];
}

function actions(u) {
  const holder = element("p", "group");
  if (tree.isLeaf(u)) return holder;
  holder.append(
    button("", outline.open[u] ? "Close" : "Open", () => toggle(u)),
    button("", "Open all below", () => toggleAllBelow(u, true)),
  );
  if (u !== outline.top) holder.append(button("", "Show only this", () => zoom(u)));
  return holder;
}

function toggle(u) {
  keepInPlace(u, () => outline.toggle(u));
}

function toggleAllBelow(u, isOpen) {
  keepInPlace(u, () => outline.toggleAllBelow(u, isOpen));
}

function zoom(u) {
  keepInPlace(u, () => outline.zoom(u));
  showZoom();
}

function showZoom() {
  $("zoom-out").hidden = outline.top === tree.root;
}

/* Clusters. */

function colourBy(clusters, isGiven) {
  state.clusters = clusters;
  tellNumber();
  $("given").setAttribute("aria-pressed", String(isGiven));
  listClusters();
  select(state.selected);
}

function tellNumber() {
  $("cut").value = $("cut-range").value = state.clusters.list.filter((cluster) => !cluster.isNoise).length;
}

function cutInto(k) {
  if (Number.isNaN(k)) return tellNumber(); // the field is empty: as it was
  colourBy(Clusters.cut(tree, Math.min(Math.max(Math.round(k), 1), tree.n), data.palette.length), false);
}

function showGiven() {
  colourBy(Clusters.given(tree, data.given), true);
}

/** The colours of the page have changed. */
function recolour() {
  colours.read();
  listClusters();
  redraw();
}

function listClusters() {
  const all = state.clusters.list.filter((cluster) => !cluster.isNoise);
  $("cluster-rows").replaceChildren(...state.clusters.largest(N_LISTED).map(clusterRow));
  const nMore = all.length - N_LISTED;
  $("cluster-note").textContent = nMore > 0 ? `and ${nMore.toLocaleString("en-GB")} smaller` : "";
  const legend = [];
  const add = (colour, text) => {
    const entry = element("li");
    entry.append(dot(colour), text);
    legend.push(entry);
  };
  if (all.length > 1) add(colours.above, "above the clusters");
  const noise = state.clusters.list.find((cluster) => cluster.isNoise);
  if (noise) add(colours.noise, `in no cluster: ${counted(noise.size)}`);
  $("legend").replaceChildren(...legend);
}

function clusterRow(cluster) {
  const row = element("tr");
  const name = element("th");
  name.scope = "row";
  const go = button("link", "", () => goTo(cluster.node));
  go.append(dot(colours.ofCluster(cluster)), cluster.name);
  go.setAttribute("aria-label", `Cluster ${cluster.name}: go to it`);
  name.append(go);
  const prototype = tree.prototypeOf(cluster.node);
  row.append(
    name,
    element("td", "number", cluster.size.toLocaleString("en-GB")),
    element("td", "number", share(cluster.size, tree.n)),
    element("td", "number", shortNumber(tree.height[cluster.node])),
    element("td", "key", prototype === NONE ? "–" : shortText(tree.nameOf(prototype))),
  );
  row.addEventListener("click", (event) => {
    if (!event.target.closest("button")) goTo(cluster.node);
  });
  return row;
}

/* Search. */

let typing = 0;

function search() {
  clearTimeout(typing);
  const text = $("search").value;
  if (text === hits.text) return;
  hits.text = text;
  hits.leaves = text === "" ? new Int32Array(0) : tree.search(text);
  hits.at = -1;
  tellHits();
  redraw();
}

function tellHits() {
  const { leaves, at, text } = hits;
  if (text === "" || at < 0) {
    $("hits").textContent = text === "" ? "" : counted(leaves.length, "hit");
    return;
  }
  const number = (count) => count.toLocaleString("en-GB");
  const found = element("span", "unseen", `: ${titleOf(leaves[at])}`); // the eye finds it in the picture
  $("hits").replaceChildren(`${number(at + 1)} of ${number(leaves.length)}`, found);
}

function nextHit(step) {
  search();
  const count = hits.leaves.length;
  if (count === 0) return;
  hits.at = hits.at < 0 && step < 0 ? count - 1 : (hits.at + step + count) % count;
  goTo(hits.leaves[hits.at]);
  tellHits();
}

/* Keys and pointers. */

/** The row that so many rows down or up bring to, from a row or from between two. */
function moveBy(nRows) {
  const y = outline.y[state.selected];
  const row = nRows > 0 ? Math.floor(y - 0.5) + nRows : Math.ceil(y - 0.5) + nRows;
  selectRow(row);
}

function selectRow(row) {
  select(outline.rows[Math.min(Math.max(row, 0), outline.nRows - 1)]);
  scrollIntoView(state.selected);
}

function selectNode(u) {
  if (u === NONE || !outline.isShown(u)) return;
  select(u);
  scrollIntoView(u);
}

const screen = () => Math.max(Math.floor(viewPixels() / ROW) - 1, 1);

const ACTIONS = {
  ArrowDown: () => moveBy(1),
  ArrowUp: () => moveBy(-1),
  PageDown: () => moveBy(screen()),
  PageUp: () => moveBy(-screen()),
  Home: () => selectRow(0),
  End: () => selectRow(outline.nRows - 1),
  ArrowRight: (u) => (outline.open[u] ? selectNode(tree.left[u]) : toggle(u)),
  ArrowLeft: (u) => (outline.open[u] ? toggle(u) : selectNode(tree.parent[u])),
  Enter: toggle,
  " ": toggle,
  "+": (u) => toggleAllBelow(u, true),
  "-": (u) => toggleAllBelow(u, false),
  z: zoom,
  l: () => $("log").click(),
};

function onTreeKey(event) {
  const action = ACTIONS[event.key];
  if (!action || isShortcut(event)) return;
  event.preventDefault();
  action(state.selected);
}

/** Whether a key is meant for the browser or the system. */
function isShortcut(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

function onKey(event) {
  const isTyping = event.target.matches("input");
  if (event.key === "/" && !isTyping && !isShortcut(event)) {
    event.preventDefault();
    $("search").focus();
    $("search").select();
  } else if (event.key === "Escape") {
    escape();
  }
}

/** Take back the last thing that hides or marks something. */
function escape() {
  if ($("search").value !== "") {
    $("search").value = "";
    search();
    $("tree").focus({ preventScroll: true });
  } else if (outline.top !== tree.root) {
    zoom(tree.root);
  } else {
    $("tree").focus({ preventScroll: true });
  }
}

/** A closed cluster opens at once; an open one is selected first, and closes when it is clicked again. */
function onClick(event) {
  const box = $("stage").getBoundingClientRect();
  const reach = event.pointerType === "mouse" ? 6 : 14;
  const u = drawing.nodeAt(event.clientX - box.left, event.clientY - box.top, reach);
  if (u === NONE) return;
  const isChosen = u === state.selected;
  select(u);
  if (!tree.isLeaf(u) && (isChosen || !outline.open[u])) toggle(u);
}

function onPointerMove(event) {
  const box = $("stage").getBoundingClientRect();
  const isOnNode = drawing.nodeAt(event.clientX - box.left, event.clientY - box.top, 6) !== NONE;
  $("stage").classList.toggle("on-node", isOnNode);
}

/** Paper is white, and as wide as it is; what has been scrolled to is printed. */
function setPrinting(isPrinting) {
  document.documentElement.classList.toggle("printing", isPrinting);
  recolour();
  fit();
  draw(); // at once: there may be no next frame before the paper
}

/* The beginning. */

function listen() {
  $("cut").addEventListener("change", () => cutInto($("cut").valueAsNumber));
  $("cut-range").addEventListener("input", () => cutInto($("cut-range").valueAsNumber));
  $("given").addEventListener("click", showGiven);
  $("open-all").addEventListener("click", () => toggleAllBelow(outline.top, true));
  $("close-all").addEventListener("click", () => toggleAllBelow(outline.top, false));
  $("log").addEventListener("change", () => {
    drawing.isLog = $("log").checked;
    redraw();
  });
  $("zoom-out").addEventListener("click", () => zoom(tree.root));
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("search").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(search, TYPING);
  });
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextHit(event.shiftKey ? -1 : 1);
  });
  $("tree").addEventListener("scroll", redraw, { passive: true });
  $("tree").addEventListener("keydown", onTreeKey);
  $("stage").addEventListener("click", onClick);
  $("stage").addEventListener("pointermove", onPointerMove);
  document.addEventListener("keydown", onKey);
  window.addEventListener("beforeprint", () => setPrinting(true));
  window.addEventListener("afterprint", () => setPrinting(false));
  for (const theme of THEMES) theme.addEventListener("change", recolour);
  new ResizeObserver(fit).observe($("tree"));
}

function begin() {
  $("empty").hidden = tree.n > 0;
  $("controls").hidden = $("picture").hidden = $("panel").hidden = tree.n === 0;
  if (tree.n === 0) return;
  document.documentElement.style.setProperty("--row", `${ROW}px`);
  document.documentElement.style.setProperty("--axis", `${AXIS}px`);
  $("cut").max = tree.n;
  $("cut-range").max = Math.min(tree.n, MAX_CUT);
  $("given").hidden = data.given === null;
  listen();
  if (data.given === null) cutInto(data.nClusters);
  else showGiven();
  fit();
}

begin();
