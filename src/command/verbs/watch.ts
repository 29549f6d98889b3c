import { orAborted } from '../../shared/async/promises.js';
import { delay } from '../../shared/clock.js';
import { clip } from '../../shared/text/paint.js';
import type { CommandContext } from '../base/command.js';
import { CommandError, exitCodes } from '../base/errors.js';
import type { ServiceSnapshot, SnapshotReader } from '../base/snapshot.js';
import type { Terminal } from '../base/terminal.js';

/** Prints a snapshot, or the error that prevented it. */
export type ResultPrinter = (result: ServiceSnapshot | CommandError) => Promise<void>;

/** Prints snapshots until Ctrl-C. Continues after errors: the service may come back. */
export async function watch(
  reader: SnapshotReader,
  print: ResultPrinter,
  intervalMs: number,
  { terminal, clock }: CommandContext,
): Promise<number> {
  const ending = new AbortController();
  using _ = terminal.onInterrupt(() => ending.abort());
  while (!ending.signal.aborted) {
    const result = await reader.read(ending.signal).catch((error: unknown) => {
      if (error instanceof CommandError || ending.signal.aborted) return error as CommandError;
      throw error;
    });
    if (!ending.signal.aborted) await print(result);
    await orAborted(delay(clock, intervalMs), ending.signal).catch(() => {});
  }
  return exitCodes.ok;
}

const csi = '\u001b[';

/** Owns the last lines of the terminal, and redraws them in place. */
export class LiveView {
  readonly #terminal: Terminal;
  #drawnLines = 0;
  #size = '';

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  async draw(lines: readonly string[]): Promise<void> {
    const { columns, rows } = this.#terminal;
    const visible = lines.slice(0, rows - 1).map((line) => `${clip(line, columns)}${csi}K\n`);
    await this.#terminal.write(`${this.#moveToStart(`${columns}x${rows}`)}${visible.join('')}${csi}J`);
    this.#drawnLines = visible.length;
  }

  /** Resizing wraps the old lines in a new way, so their position is lost: the screen is cleared. */
  #moveToStart(size: string): string {
    const isResized = this.#size !== '' && this.#size !== size;
    this.#size = size;
    if (isResized) return `${csi}H${csi}2J`;
    return this.#drawnLines === 0 ? '' : `${csi}${this.#drawnLines}A\r`;
  }
}
