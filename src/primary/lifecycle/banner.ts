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
  /** Path of the console; null if it is switched off. */
  readonly consolePath: string | null;
  readonly needsKey: boolean;
}

/** URLs of the ports of features, with the programs that use them. */
type PortUrls = readonly (readonly [clients: string, url: string])[];

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
  #portUrls: PortUrls = [];
  #checked: CheckedCli | null = null;
  #isShown = false;
  #stopTimer: StopTimer = () => {};

  constructor(facts: BannerFacts, clock: Clock, paint: Paint, show: (lines: readonly string[]) => void) {
    this.#facts = facts;
    this.#clock = clock;
    this.#paint = paint;
    this.#show = show;
  }

  /** Called when the service can be reached at this URL; `portUrls` are for programs that need another port. */
  showAddresses(url: string, portUrls: PortUrls): void {
    this.#url = url;
    this.#portUrls = portUrls;
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
    this.#show(bannerLines(this.#facts, { url: this.#url, portUrls: this.#portUrls }, this.#checked, this.#paint));
  }
}

export function createBanner(config: Pick<Config, 'console' | 'needsKey'>, host: BannerHost, adapter: string): Banner {
  const { product, clock, logStyle } = host;
  const consolePath = config.console === 'on' ? '/console/' : null;
  const facts = { version: product.version, adapter, consolePath, needsKey: config.needsKey };
  return new Banner(facts, clock, paintFor(logStyle === 'coloured'), (lines) => host.show(lines));
}

/** Returns the lines of the greeting: URL, console, model CLI with its version, and an example request. */
export function bannerLines(
  facts: BannerFacts,
  { url, portUrls }: { readonly url: string; readonly portUrls: PortUrls },
  checked: CheckedCli | null,
  paint: Paint,
): string[] {
  const { version, adapter, consolePath, needsKey } = facts;
  const header = needsKey ? `-H "X-API-Key: $MODEL_API_KEY" ` : '';
  const rows: [string, string][] = [
    [`prompt-relay ${version}`, paint.bold(url)],
    ...(consolePath === null ? [] : [['console', url + consolePath] as [string, string]]),
    ...portUrls.map(([clients, portUrl]): [string, string] => [clients, portUrl]),
    ['model CLI', cliText(adapter, checked, paint)],
    ['ask it', `curl ${url}/ask ${header}-H 'Content-Type: application/json' -d '{"prompt":"Hello"}'`],
  ];
  return ['', ...labelledRows(rows, paint.dim).map((row) => `  ${row}`), ''];
}

function cliText(adapter: string, checked: CheckedCli | null, paint: Paint): string {
  if (checked === null) return `${adapter}, ${paint.yellow('checking …')}`;
  const name = escaped([adapter, checked.version ?? ''].join(' ').trimEnd());
  if (checked.status === 'ready') return `${name}, ${paint.green('ready')}`;
  return `${name}, ${paint.red('not ready')}: ${escaped(checked.error ?? '')}`;
}
