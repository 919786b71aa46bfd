/** The picture of what is in view: links, triangles and the axis on a canvas, and a line of text for each row. */

const ROW = 24; // pixels
const AXIS = 34;
const GAP = 10; // between the links and the texts
const LEFT = 16;
const LOWEST_POWER = -307; // of ten, on the axis: below are numbers that have lost digits, and 0

class Drawing {
  constructor(outline, colours, canvas, rows) {
    this.outline = outline;
    this.tree = outline.tree;
    this.colours = colours;
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.rows = rows;
    this.forks = [];
    this.isLog = false;
    this.knee = this.#middleHeight(); // the logarithmic scale is one of proportions below it
  }

  #middleHeight() {
    const heights = this.tree.height.subarray(this.tree.n); // from the lowest to the highest
    return heights[heights.length >> 1] || heights.find((height) => height > 0) || 1;
  }

  resize(width, height) {
    const scale = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.right = Math.round(width - Math.min(Math.max(0.36 * width, 140), 320)); // where height 0 is
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  /** Where a height is: in proportion, or by its logarithm, which leaves room for merges far below the root. */
  x(height) {
    const { ceiling } = this.outline;
    const part = this.isLog ? this.#magnitude(height) / this.#magnitude(ceiling) : height / ceiling;
    return this.right - part * (this.right - LEFT);
  }

  /** log(1 + height / knee), in a form in which heights of 1e-300 and of 1e150 may stand side by side. */
  #magnitude(height) {
    return Math.log(this.knee + height) - Math.log(this.knee);
  }

  /** Where a place in rows is on the canvas, when so many pixels of rows are above it. */
  y(row) {
    return AXIS + row * ROW - this.offset;
  }

  draw(offset, state) {
    this.offset = offset;
    const firstRow = Math.floor(offset / ROW) - 1;
    const lastRow = Math.ceil((offset + this.height - AXIS) / ROW);
    const { forks, rows } = this.outline.between(firstRow, lastRow);
    this.forks = forks;
    this.context.clearRect(0, 0, this.width, this.height);
    this.#grid();
    if (state.selected !== this.outline.top) this.#band(state.selected);
    this.#links(state);
    this.#triangles(rows, state);
    this.#axis();
    this.rows.replaceChildren(...Array.from(rows, (u) => this.#text(u, state)));
  }

  /** Behind all rows of the selected node. */
  #band(u) {
    const { outline, context } = this;
    const top = Math.max(this.y(outline.first[u]), -ROW);
    const bottom = Math.min(this.y(outline.last[u] + 1), this.height + ROW);
    const left = this.x(this.tree.height[u]) - 6;
    context.fillStyle = this.colours.band;
    context.beginPath();
    context.roundRect(left, top, this.width - left - 2, bottom - top, 5);
    context.fill();
  }

  #links({ clusters, selected }) {
    const byColour = new Map();
    for (const u of this.forks) {
      const colour = this.colours.ofNode(clusters, u);
      if (!byColour.has(colour)) byColour.set(colour, []);
      byColour.get(colour).push(u);
    }
    const { context } = this;
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    for (const [colour, nodes] of byColour) {
      context.strokeStyle = colour;
      context.beginPath();
      const isTaken = new Uint8Array(Math.ceil(this.width) + 1);
      for (const u of nodes) this.#fork(u, isTaken);
      context.stroke();
    }
    if (this.outline.open[selected]) {
      context.strokeStyle = this.colours.accent;
      context.lineWidth = 3;
      context.beginPath();
      this.#fork(selected, new Uint8Array(Math.ceil(this.width) + 1));
      context.stroke();
    }
  }

  /**
   * The line from one child by way of the node to the other. Where both ends are out of view, one line stands for all
   * that fall on the same pixels: a tree like a path has 10⁵ of them.
   */
  #fork(u, isTaken) {
    const { tree, outline, context } = this;
    const left = tree.left[u], right = tree.right[u], x = this.x(tree.height[u]);
    const high = this.y(outline.y[left]), low = this.y(outline.y[right]);
    if (low < 0 || high > this.height) return;
    const top = Math.max(high, -ROW), bottom = Math.min(low, this.height + ROW);
    if (high < 0 && low > this.height) {
      if (isTaken[Math.round(x)]) return;
      isTaken[Math.round(x)] = 1;
    }
    if (high >= 0) {
      context.moveTo(this.x(tree.height[left]), high);
      context.lineTo(x, high);
    } else {
      context.moveTo(x, top);
    }
    context.lineTo(x, bottom);
    if (low <= this.height) context.lineTo(this.x(tree.height[right]), low);
  }

  /** A closed cluster is as long as it is high. */
  #triangles(rows, { clusters }) {
    const { tree, outline, context } = this;
    const half = 0.36 * ROW;
    for (const u of rows) {
      if (tree.isLeaf(u)) continue;
      const y = this.y(outline.y[u]);
      context.beginPath();
      context.moveTo(Math.min(this.x(tree.height[u]), this.right - 4), y);
      context.lineTo(this.right, y - half);
      context.lineTo(this.right, y + half);
      context.closePath();
      context.fillStyle = context.strokeStyle = this.colours.ofNode(clusters, u);
      context.globalAlpha = 0.35;
      context.fill();
      context.globalAlpha = 1;
      context.lineWidth = 1.2;
      context.stroke();
    }
  }

  #ticks() {
    return this.isLog ? this.#powers() : this.#steps();
  }

  /** 0 and powers of ten, as far as there is room for them. */
  #powers() {
    const found = [0];
    const lowest = Math.max(Math.ceil(Math.log10(this.knee)) - 1, LOWEST_POWER);
    for (let power = lowest; 10 ** power <= this.outline.ceiling; power++) {
      if (this.x(found.at(-1)) - this.x(10 ** power) >= 48) found.push(10 ** power);
    }
    return found;
  }

  #steps() {
    const { ceiling } = this.outline;
    // At least 3, or the first step could be above the root.
    const rough = ceiling / Math.max(Math.floor((this.right - LEFT) / 80), 3);
    const power = 10 ** Math.max(Math.floor(Math.log10(rough)), LOWEST_POWER);
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough) ?? ceiling;
    return Array.from({ length: Math.floor(ceiling / step + 1e-9) + 1 }, (_, i) => i * step);
  }

  #grid() {
    const { context } = this;
    context.strokeStyle = this.colours.grid;
    context.lineWidth = 1;
    context.beginPath();
    for (const tick of this.#ticks()) {
      const x = Math.round(this.x(tick)) + 0.5;
      context.moveTo(x, AXIS);
      context.lineTo(x, this.height);
    }
    context.stroke();
  }

  /** On top of the links that have been scrolled behind it. */
  #axis() {
    const { context } = this;
    context.fillStyle = this.colours.surface;
    context.fillRect(0, 0, this.width, AXIS);
    context.fillStyle = this.colours.quiet;
    context.font = `12px ${getComputedStyle(this.canvas).fontFamily}`;
    context.textBaseline = "middle";
    context.textAlign = "center";
    for (const tick of this.#ticks()) {
      const text = shortNumber(tick), half = context.measureText(text).width / 2;
      context.fillText(text, Math.max(this.x(tick), half + 4), AXIS / 2);
    }
    context.textAlign = "left";
    context.fillText("height", this.right + GAP, AXIS / 2);
    context.strokeStyle = this.colours.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(0, AXIS - 0.5);
    context.lineTo(this.width, AXIS - 0.5);
    context.stroke();
  }

  /** A key, or how many points a closed cluster has and which stands for them. */
  #text(u, { clusters, selected, hits }) {
    const { tree } = this;
    const row = element("div", "row");
    row.style.top = `${this.y(this.outline.y[u]) - ROW / 2}px`;
    row.style.left = `${this.right + GAP}px`;
    row.classList.toggle("selected", u === selected);
    row.append(dot(this.colours.ofNode(clusters, u)));
    const nHits = hits.below(u);
    if (tree.isLeaf(u)) {
      row.append(element("span", nHits ? "key hit" : "key", tree.nameOf(u)));
      return row;
    }
    row.append(element("span", "count", tree.size[u].toLocaleString("en-GB")));
    if (nHits) row.append(element("span", "hit", counted(nHits, "hit")));
    const prototype = tree.prototypeOf(u);
    if (prototype !== NONE) row.append(element("span", "key quiet", tree.nameOf(prototype)));
    return row;
  }

  /** The node at a point of the canvas, NONE where there is none: a row, a fork that is near, or the stem of a row. */
  nodeAt(x, y, reach) {
    const { tree, outline } = this;
    if (y < AXIS) return NONE;
    const row = Math.floor((y - AXIS + this.offset) / ROW);
    if (row >= outline.nRows) return NONE;
    const u = outline.rows[row];
    if (x >= this.x(tree.height[u])) return u;
    let best = NONE, nearest = reach;
    for (const v of this.forks) {
      const distance = Math.abs(x - this.x(tree.height[v]));
      const isBeside = y >= this.y(outline.y[tree.left[v]]) - reach && y <= this.y(outline.y[tree.right[v]]) + reach;
      if (isBeside && distance <= nearest) {
        best = v;
        nearest = distance;
      }
    }
    const isOnStem = best === NONE && u !== outline.top && x > this.x(tree.height[tree.parent[u]]);
    return isOnStem ? u : best;
  }
}
