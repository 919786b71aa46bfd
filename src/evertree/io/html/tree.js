/**
 * The tree and its flat clusters, as typed arrays by node. Nodes have SciPy's numbers: leaves 0 … n-1 are the keys in
 * their order, and merges n … 2n-2 go from the lowest to the highest, so that children come before parents. No function
 * recurses: a tree may be 10⁵ levels deep.
 */

/** In place of a cluster: there are several. */
const SEVERAL = -1;

/** In place of a node: there is none. */
const NONE = -1;

/** Numbers that Python wrote, the least byte first. */
function decode(text, Kind) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Kind(bytes.buffer);
}

class Tree {
  constructor(data) {
    this.keys = data.keys;
    const n = this.keys.length;
    this.n = n;
    this.root = 2 * n - 2; // of an empty tree: -2, which is no node
    const nNodes = Math.max(2 * n - 1, 0);
    const merges = decode(data.merges, Int32Array);
    this.left = new Int32Array(nNodes).fill(NONE);
    this.right = new Int32Array(nNodes).fill(NONE);
    this.parent = new Int32Array(nNodes).fill(NONE);
    this.size = new Int32Array(nNodes).fill(1);
    this.height = new Float64Array(nNodes);
    this.height.set(decode(data.heights, Float64Array), n);
    this.oldest = new Int32Array(nNodes); // the leaf with the lowest number below each node
    for (let u = 0; u < nNodes; u++) {
      if (u < n) {
        this.oldest[u] = u;
        continue;
      }
      const left = merges[2 * (u - n)], right = merges[2 * (u - n) + 1];
      this.left[u] = left;
      this.right[u] = right;
      this.parent[left] = this.parent[right] = u;
      this.size[u] = this.size[left] + this.size[right];
      this.oldest[u] = Math.min(this.oldest[left], this.oldest[right]);
    }
    this.#placeLeaves();
    this.prototype = new Map();
    const leaves = decode(data.prototypes.leaves, Int32Array);
    decode(data.prototypes.nodes, Int32Array).forEach((u, i) => this.prototype.set(u, leaves[i]));
  }

  /** Below each node are `size` leaves side by side, from place `start` on; `order` has the leaf at each place. */
  #placeLeaves() {
    this.start = new Int32Array(this.left.length);
    this.order = new Int32Array(this.n);
    for (let u = this.root; u >= this.n; u--) {
      this.start[this.left[u]] = this.start[u];
      this.start[this.right[u]] = this.start[u] + this.size[this.left[u]];
    }
    for (let u = 0; u < this.n; u++) this.order[this.start[u]] = u;
  }

  isLeaf(u) {
    return u < this.n;
  }

  /** Whether v is u or below it. */
  holds(u, v) {
    return this.start[u] <= this.start[v] && this.start[v] + this.size[v] <= this.start[u] + this.size[u];
  }

  /** The key of a leaf, in quotes where nothing of it could be seen. */
  nameOf(leaf) {
    const key = this.keys[leaf];
    return key.trim() === "" ? `"${key}"` : key;
  }

  /** The leaf that stands for a node, or NONE where that was not worked out. */
  prototypeOf(u) {
    return this.isLeaf(u) ? u : this.prototype.get(u) ?? NONE;
  }

  /** The nodes above one, from its parent to the root. */
  ancestors(u) {
    const found = [];
    for (let v = this.parent[u]; v !== NONE; v = this.parent[v]) found.push(v);
    return found;
  }

  /** The leaves whose keys have a text in them, however it is written, in the order of the picture. */
  search(text) {
    const plain = (key) => key.normalize().toLowerCase();
    this.plainKeys ??= this.keys.map(plain);
    const wanted = plain(text);
    return this.order.filter((leaf) => this.plainKeys[leaf].includes(wanted));
  }
}

/**
 * Flat clusters: `of[u]` is the place in `list` of the cluster that all leaves below node u are in, or SEVERAL. Each of
 * `list` has a name, the number of its colour in the palette, a size, and the largest node that is wholly inside it.
 */
class Clusters {
  constructor(of, list) {
    this.of = of;
    this.list = list;
  }

  /** What the highest k - 1 merges leave, numbered by the oldest leaf, as `Hierarchy.cut` does. */
  static cut(tree, k, nColours) {
    const firstUndone = 2 * tree.n - k; // this merge and all above it
    const tops = [];
    for (let u = 0; u < Math.min(firstUndone, tree.parent.length); u++) {
      if (tree.parent[u] === NONE || tree.parent[u] >= firstUndone) tops.push(u);
    }
    tops.sort((u, v) => tree.oldest[u] - tree.oldest[v]);
    const of = new Int32Array(tree.parent.length).fill(SEVERAL);
    const list = tops.map((u, i) => {
      of[u] = i;
      return { name: String(i), colour: i % nColours, size: tree.size[u], node: u };
    });
    for (let u = Math.min(firstUndone, of.length) - 1; u >= 0; u--) {
      if (of[u] === SEVERAL) of[u] = of[tree.parent[u]];
    }
    return new Clusters(of, list);
  }

  /** Those that Python was given, which need not be nodes of the tree. */
  static given(tree, given) {
    const of = new Int32Array(tree.parent.length);
    of.set(decode(given.of, Int32Array));
    const list = given.names.map((name, i) => {
      const isNoise = given.noise === i;
      return { name: isNoise ? "none" : name, colour: given.colours[i], size: 0, node: NONE, isNoise };
    });
    for (let u = 0; u < of.length; u++) {
      if (u >= tree.n) of[u] = of[tree.left[u]] === of[tree.right[u]] ? of[tree.left[u]] : SEVERAL;
      else list[of[u]].size++;
      if (of[u] === SEVERAL) continue;
      const cluster = list[of[u]];
      if (cluster.node === NONE || tree.size[u] > tree.size[cluster.node]) cluster.node = u;
    }
    return new Clusters(of, list);
  }

  largest(count) {
    return this.list.filter((cluster) => !cluster.isNoise).sort((a, b) => b.size - a.size).slice(0, count);
  }
}

/** What there is to say about the leaves below a node in a column that the user gave; of a leaf, all of it. */
function summarise(tree, column, u) {
  column.values ??= decode(column.data, column.names ? Int32Array : Float64Array);
  if (tree.isLeaf(u)) return column.names ? column.names[column.values[u]] : rangeOf(column, [u]);
  const leaves = tree.order.subarray(tree.start[u], tree.start[u] + tree.size[u]);
  return column.names ? frequentOf(column, leaves) : rangeOf(column, leaves);
}

function rangeOf(column, leaves) {
  let sum = 0, count = 0, least = Infinity, most = -Infinity;
  for (const leaf of leaves) {
    const value = column.values[leaf];
    if (Number.isNaN(value)) continue;
    sum += value;
    count++;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (count === 0) return "–";
  return least === most ? String(least) : `mean ${shortNumber(sum / count)}, ${shortNumber(least)} to ${shortNumber(most)}`;
}

function frequentOf(column, leaves) {
  const counts = new Map();
  for (const leaf of leaves) counts.set(column.values[leaf], (counts.get(column.values[leaf]) ?? 0) + 1);
  const frequent = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const texts = frequent.slice(0, 3).map(([value, count]) => {
    const text = shortText(column.names[value]);
    return counts.size === 1 ? text : `${text} (${share(count, leaves.length)})`;
  });
  return texts.join(", ") + (counts.size > 3 ? ", …" : "");
}
