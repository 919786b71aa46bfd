/** The colours of the page as they are at the moment: its style sheet's, and from these the ones of clusters. */

const CONTRAST = 3; // of whatever is drawn with what it is drawn on, as WCAG wants it
const STEP = 0.05; // of the way to black or to white

class Colours {
  constructor(palette) {
    this.given = palette.map((code) => [1, 3, 5].map((i) => parseInt(code.slice(i, i + 2), 16)));
    this.read();
  }

  /** Look at the style sheet: the theme may be light, dark, or one of the system's for high contrast. */
  read() {
    const probe = element("span", "probe");
    document.body.append(probe);
    for (const name of ["accent", "above", "band", "grid", "line", "noise", "quiet", "surface"]) {
      probe.style.color = `var(--${name})`;
      this[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    const surface = channels(this.surface);
    this.palette = this.given.map((colour) => visibleOn(surface, colour));
  }

  ofCluster(cluster) {
    return cluster.isNoise ? this.noise : this.palette[cluster.colour];
  }

  ofNode(clusters, u) {
    return clusters.of[u] === SEVERAL ? this.above : this.ofCluster(clusters.list[clusters.of[u]]);
  }
}

/** Red, green and blue, from 0 to 255, of a colour that a browser has worked out. */
function channels(colour) {
  return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
}

/** A colour, made darker on a light surface and lighter on a dark one until it can be seen there. */
function visibleOn(surface, colour) {
  const end = luminance(surface) > 0.18 ? 0 : 255;
  let seen = colour;
  while (contrast(seen, surface) < CONTRAST) seen = seen.map((value) => value + STEP * (end - value));
  return `rgb(${seen.map(Math.round).join(" ")})`;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** How bright a colour is to the eye: WCAG's relative luminance, from 0 to 1. */
function luminance(colour) {
  const [red, green, blue] = colour.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
