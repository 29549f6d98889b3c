import type { Clock, StopTimer } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { ReadinessEntry } from '../../shared/health.js';
import { labelledRows } from '../../shared/text/format.js';
import { escaped, type Paint, paintFor } from '../../shared/text/paint.js';
import type { Host } from './host.js';

type BannerHost = Pick<Host, 'product' | 'clock' | 'logStyle' | 'show'>;

/** Facts about the service that are known before its start. */
export interface BannerFacts {
  readonly version: string;
  readonly adapter: string;
  readonly needsKey: boolean;
}

/** Lines of features, such as the URLs of their ports with the programs that use them. */
export type BannerRows = readonly (readonly [label: string, text: string])[];

/** Maximum wait for the first check. A later result appears only in the log. */
const waitMs = 2000;

type CheckedCli = Pick<ReadinessEntry, 'status' | 'version' | 'error'>;

/**
 * Owns the greeting in the terminal that started the service. The greeting appears once, with the first check if that
 * ends soon.
 */
export class Banner {
  readonly #facts: BannerFacts;
  readonly #clock: Clock;
  readonly #show: (lines: readonly string[]) => void;
  readonly #paint: Paint;
  #url: string | null = null;
  #rows: BannerRows = [];
  #checked: CheckedCli | null = null;
  #isShown = false;
  #stopTimer: StopTimer = () => {};

  constructor(facts: BannerFacts, clock: Clock, paint: Paint, show: (lines: readonly string[]) => void) {
    this.#facts = facts;
    this.#clock = clock;
    this.#paint = paint;
    this.#show = show;
  }

  /** Called when the service can be reached at this URL. */
  showAddresses(url: string, rows: BannerRows): void {
    this.#url = url;
    this.#rows = rows;
    if (this.#checked !== null) return this.#showOnce();
    this.#stopTimer = this.#clock.after(waitMs, () => this.#showOnce());
  }

  /** Called when a readiness check has ended. */
  showCheck(entry: CheckedCli): void {
    this.#checked = entry;
    if (this.#url !== null) this.#showOnce();
  }

  #showOnce(): void {
    if (this.#isShown || this.#url === null) return;
    this.#isShown = true;
    this.#stopTimer();
    this.#show(bannerLines(this.#facts, { url: this.#url, rows: this.#rows }, this.#checked, this.#paint));
  }
}

export function createBanner({ needsKey }: Pick<Config, 'needsKey'>, host: BannerHost, adapter: string): Banner {
  const { product, clock, logStyle } = host;
  const facts = { version: product.version, adapter, needsKey };
  return new Banner(facts, clock, paintFor(logStyle === 'coloured'), (lines) => host.show(lines));
}

/** Returns the lines of the greeting: URL, lines of features, model CLI with its version, and an example request. */
export function bannerLines(
  facts: BannerFacts,
  { url, rows }: { readonly url: string; readonly rows: BannerRows },
  checked: CheckedCli | null,
  paint: Paint,
): string[] {
  const { version, adapter, needsKey } = facts;
  const header = needsKey ? `-H "X-API-Key: $MODEL_API_KEY" ` : '';
  const all: [string, string][] = [
    [`prompt-relay ${version}`, paint.bold(url)],
    ...rows.map(([label, text]): [string, string] => [label, text]),
    ['model CLI', cliText(adapter, checked, paint)],
    ['ask it', `curl ${url}/ask ${header}-H 'Content-Type: application/json' -d '{"prompt":"Hello"}'`],
  ];
  return ['', ...labelledRows(all, paint.dim).map((row) => `  ${row}`), ''];
}

function cliText(adapter: string, checked: CheckedCli | null, paint: Paint): string {
  if (checked === null) return `${adapter}, ${paint.yellow('checking …')}`;
  const name = escaped([adapter, checked.version ?? ''].join(' ').trimEnd());
  if (checked.status === 'ready') return `${name}, ${paint.green('ready')}`;
  return `${name}, ${paint.red('not ready')}: ${escaped(checked.error ?? '')}`;
}
