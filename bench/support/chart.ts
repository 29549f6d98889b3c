/** Values of one line of a chart, at the times that all lines share. */
interface Series {
  readonly name: string;
  readonly values: readonly number[];
}

export interface Panel {
  readonly title: string;
  readonly series: readonly Series[];
}

const width = 760;
const panelHeight = 150;
const [left, right, top, bottom] = [56, 150, 30, 24];
const colours = ['#2563eb', '#dc2626', '#059669', '#d97706', '#7c3aed', '#475569'];

/** Draws panels below each other with a common time axis, as an SVG. `times` are minutes. */
export function drawChart(title: string, times: readonly number[], panels: readonly Panel[]): string {
  const height = 36 + panels.length * panelHeight;
  const drawn = panels.map((panel, index) => drawPanel(panel, times, 36 + index * panelHeight));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="${left}" y="20" font-size="14" font-weight="bold">${escaped(title)}</text>`,
    ...drawn,
    '</svg>\n',
  ].join('\n');
}

function drawPanel({ title, series }: Panel, times: readonly number[], y0: number): string {
  const highest = niceAbove(Math.max(...series.flatMap(({ values }) => values), 0));
  const last = times.at(-1) || 1;
  const [y1, y2] = [y0 + top, y0 + panelHeight - bottom];
  const x = (minutes: number) => left + ((width - left - right) * minutes) / last;
  const y = (value: number) => y2 - ((y2 - y1) * value) / highest;
  const lines = series.map(({ name, values }, index) => {
    const points = values.map((value, at) => `${x(times[at] ?? 0).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
    const colour = colours[index % colours.length];
    const legend = `<text x="${width - right + 10}" y="${y1 + 4 + 14 * index}" fill="${colour}">${escaped(name)}</text>`;
    return `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="1.5"/>${legend}`;
  });
  const grid = [0, highest / 2, highest].map((value) => {
    const line = `<line x1="${left}" y1="${y(value)}" x2="${width - right}" y2="${y(value)}" stroke="#e2e8f0"/>`;
    return `${line}<text x="${left - 6}" y="${y(value) + 4}" text-anchor="end" fill="#475569">${value}</text>`;
  });
  const minutes = [0, last / 2, last].map(
    (at) => `<text x="${x(at)}" y="${y2 + 14}" text-anchor="middle" fill="#475569">${at.toFixed(0)} min</text>`,
  );
  return [
    `<text x="${left}" y="${y1 - 10}" font-weight="bold">${escaped(title)}</text>`,
    ...grid,
    ...minutes,
    ...lines,
  ].join('\n');
}

/** Returns the next number of 1, 2, 5, 10, … */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
