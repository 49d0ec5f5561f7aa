/** Renders plots of the report as SVG. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Series {
  readonly name: string;
  /** The number of the colour: `--series-1`, `--series-2`, …. */
  readonly color: number;
  readonly points: readonly Point[];
  readonly kind: 'dots' | 'line';
}

export interface Plot {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly scale: 'linear' | 'log';
  readonly yScale: 'linear' | 'log';
  readonly series: readonly Series[];
  /** Dashed lines to compare with. */
  readonly guides: readonly (readonly [Point, Point])[];
}

const WIDTH = 460;
const HEIGHT = 330;
/** Room for numbers in the font size of a phone. */
const LEFT = 92;
const RIGHT = 26;
const TOP = 14;
const BOTTOM = 54;
const TICKS = 5;

interface Axis {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
}

export function renderPlot(plot: Plot): string {
  const points = [...plot.series.flatMap((series) => series.points), ...plot.guides.flat()];
  if (points.length === 0) return `<p class="empty">${escapeHtml(plot.title)}: no rows</p>`;
  const x = createAxis(
    points.map((point) => point.x),
    plot.scale,
    [LEFT, WIDTH - RIGHT],
  );
  const y = createAxis(
    points.map((point) => point.y),
    plot.yScale,
    [HEIGHT - BOTTOM, TOP],
  );
  const body = [
    ...x.ticks.map((tick) => renderTick(x.place(tick), tick, 'x')),
    ...y.ticks.map((tick) => renderTick(y.place(tick), tick, 'y')),
    ...plot.guides.map(([from, to]) => renderGuide(x, y, from, to)),
    ...plot.series.map((series) => renderSeries(series, x, y)),
    `<text class="label" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${escapeHtml(plot.xLabel)}</text>`,
    `<text class="label" transform="translate(20 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">${escapeHtml(plot.yLabel)}</text>`,
  ];
  const label = `${plot.title}: ${plot.yLabel} by ${plot.xLabel}`;
  return `<figure><figcaption>${escapeHtml(plot.title)}${renderLegend(plot.series)}</figcaption><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(label)}">${body.join('')}</svg></figure>`;
}

function renderLegend(series: readonly Series[]): string {
  if (series.length < 2) return '';
  const keys = series.map(({ name, color }) => `<span class="key"><i class="s${color}"></i>${escapeHtml(name)}</span>`);
  return `<span class="legend">${keys.join('')}</span>`;
}

function renderSeries({ points, color, kind }: Series, x: Axis, y: Axis): string {
  const placed = points.map((point) => [x.place(point.x), y.place(point.y)] as const);
  if (kind === 'dots')
    return `<g class="dots s${color}">${placed.map(([cx, cy]) => `<circle cx="${short(cx)}" cy="${short(cy)}" r="2"/>`).join('')}</g>`;
  const path = placed.map(([px, py], i) => `${i === 0 ? 'M' : 'L'}${short(px)} ${short(py)}`).join('');
  const marks = placed.map(([cx, cy]) => `<circle cx="${short(cx)}" cy="${short(cy)}" r="3"/>`).join('');
  return `<g class="line s${color}"><path d="${path}"/>${marks}</g>`;
}

function renderGuide(x: Axis, y: Axis, from: Point, to: Point): string {
  return `<line class="guide" x1="${short(x.place(from.x))}" y1="${short(y.place(from.y))}" x2="${short(x.place(to.x))}" y2="${short(y.place(to.y))}"/>`;
}

function renderTick(at: number, value: number, side: 'x' | 'y'): string {
  const text = formatTick(value);
  if (side === 'x')
    return `<line class="grid" x1="${short(at)}" x2="${short(at)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/><text class="tick" x="${short(at)}" y="${HEIGHT - BOTTOM + 24}" text-anchor="middle">${text}</text>`;
  return `<line class="grid" y1="${short(at)}" y2="${short(at)}" x1="${LEFT}" x2="${WIDTH - RIGHT}"/><text class="tick" x="${LEFT - 7}" y="${short(at + 4)}" text-anchor="end">${text}</text>`;
}

function createAxis(values: readonly number[], scale: 'linear' | 'log', [from, to]: readonly [number, number]): Axis {
  const usable = scale === 'log' ? values.filter((value) => value > 0) : values;
  let low = usable.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  let high = usable.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  if (!(high > low)) [low, high] = scale === 'log' ? [low / 2, low * 2] : [low - 1, low + 1];
  const transform = scale === 'log' ? Math.log10 : (value: number) => value;
  const start = transform(low);
  const span = transform(high) - start;
  const place = (value: number) => from + ((transform(value) - start) / span) * (to - from);
  return { place, ticks: scale === 'log' ? listLogTicks(low, high) : listLinearTicks(low, high) };
}

/** Returns 1, 2 and 5 of each decade; only powers of ten for many decades, and even steps where fewer than two would remain. */
function listLogTicks(low: number, high: number): number[] {
  const decades = Array.from({ length: 40 }, (_, i) => 10 ** (i - 20));
  const within = (ticks: number[]) => ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  const fine = within(decades.flatMap((decade) => [decade, 2 * decade, 5 * decade]));
  if (fine.length < 2) return listLinearTicks(low, high);
  return fine.length <= TICKS + 3 ? fine : within(decades);
}

function listLinearTicks(low: number, high: number): number[] {
  const raw = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw) ?? raw;
  const first = Math.ceil(low / step) * step;
  return Array.from({ length: TICKS + 2 }, (_, i) => first + i * step).filter((tick) => tick <= high + step * 1e-6);
}

function formatTick(value: number): string {
  if (Math.abs(value) >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (Math.abs(value) >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}

function short(value: number): string {
  return value.toFixed(1);
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
