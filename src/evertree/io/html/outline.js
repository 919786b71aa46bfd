/**
 * What of the tree is shown: which nodes are open, and where each is. Every leaf and every closed cluster is a row; the
 * root is at the left, and an open node stands beside the middle between its children.
 */

class Outline {
  constructor(tree, nOpen) {
    this.tree = tree;
    this.top = tree.root; // what is shown: all, or a cluster
    this.open = new Uint8Array(tree.parent.length);
    for (let u = Math.max(tree.n, tree.root + 1 - nOpen); u <= tree.root; u++) this.open[u] = 1;
    this.y = new Float64Array(tree.parent.length); // in rows; NaN where a node is not shown
    this.first = new Int32Array(tree.parent.length); // the first and the last row below a node
    this.last = new Int32Array(tree.parent.length);
    this.rows = new Int32Array(tree.n);
    this.nRows = 0;
    this.layOut();
  }

  /** Place all that is shown. It looks at each shown node twice, and is all that opening and closing cost. */
  layOut() {
    const { tree, open, y, first, last } = this;
    y.fill(NaN);
    this.nRows = 0;
    if (tree.n === 0) return;
    const opened = [];
    const waiting = [this.top];
    while (waiting.length) {
      const u = waiting.pop();
      if (open[u]) {
        opened.push(u);
        waiting.push(tree.right[u], tree.left[u]);
      } else {
        first[u] = last[u] = this.nRows;
        y[u] = this.nRows + 0.5;
        this.rows[this.nRows++] = u;
      }
    }
    for (let i = opened.length - 1; i >= 0; i--) {
      const u = opened[i], left = tree.left[u], right = tree.right[u];
      y[u] = (y[left] + y[right]) / 2;
      first[u] = first[left];
      last[u] = last[right];
    }
  }

  isShown(u) {
    return !Number.isNaN(this.y[u]);
  }

  /** The height at the left end of the axis. */
  get ceiling() {
    return this.tree.height[this.top] || 1;
  }

  /** Open or close a node; what is open below a closed one stays open for when it is opened again. */
  toggle(u) {
    if (this.tree.isLeaf(u)) return;
    this.open[u] = this.open[u] ? 0 : 1;
    this.layOut();
  }

  toggleAllBelow(u, isOpen) {
    const waiting = [u];
    while (waiting.length) {
      const v = waiting.pop();
      if (this.tree.isLeaf(v)) continue;
      this.open[v] = isOpen ? 1 : 0;
      waiting.push(this.tree.left[v], this.tree.right[v]);
    }
    this.layOut();
  }

  zoom(u) {
    this.top = u;
    this.open[u] = this.tree.isLeaf(u) ? 0 : 1;
    this.layOut();
  }

  /** Open whatever hides a node. */
  reveal(u) {
    if (!this.tree.holds(this.top, u)) this.top = this.tree.root;
    for (const v of this.tree.ancestors(u)) this.open[v] = 1;
    this.layOut();
  }

  /** The lowest node shown that holds u, or the topmost one. */
  nearestShown(u) {
    let v = u;
    while (v !== NONE && !this.isShown(v)) v = this.tree.parent[v];
    return v === NONE ? this.top : v;
  }

  /** The nodes that have something between two rows: those that are open, and those that are rows. */
  between(firstRow, lastRow) {
    const forks = [];
    const waiting = [this.top];
    while (waiting.length) {
      const u = waiting.pop();
      if (!this.open[u] || this.last[u] < firstRow || this.first[u] > lastRow) continue;
      forks.push(u);
      waiting.push(this.tree.right[u], this.tree.left[u]);
    }
    return { forks, rows: this.rows.subarray(Math.max(firstRow, 0), Math.min(lastRow, this.nRows - 1) + 1) };
  }
}
