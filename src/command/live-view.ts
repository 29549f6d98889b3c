import { clip } from './render/paint.js';
import type { Terminal } from './terminal.js';

const csi = '\u001b[';

/** Owns the lines at the end of the screen that are redrawn in place. */
export class LiveView {
  readonly #terminal: Terminal;
  #drawn = 0;
  #size = '';

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  async draw(lines: readonly string[]): Promise<void> {
    const { columns, rows } = this.#terminal;
    const shown = lines.slice(0, rows - 1).map((line) => `${clip(line, columns)}${csi}K\n`);
    await this.#terminal.write(`${this.#start(`${columns}x${rows}`)}${shown.join('')}${csi}J`);
    this.#drawn = shown.length;
  }

  /** A window of another size has wrapped the old lines anew: nothing on it is where it was. */
  #start(size: string): string {
    const isResized = this.#size !== '' && this.#size !== size;
    this.#size = size;
    if (isResized) return `${csi}H${csi}2J`;
    return this.#drawn === 0 ? '' : `${csi}${this.#drawn}A\r`;
  }
}
