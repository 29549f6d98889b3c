import { type BrowserContext, chromium, firefox, type Page } from 'playwright-core';
import { temporaryFolder } from '../basics/folder.js';

/** Whether the tests use Firefox; a variant of the suite selects it. */
export const isFirefox = process.env.TESTED_BROWSER === 'firefox';
export const browserProgram = isFirefox ? '/usr/bin/firefox-esr' : '/usr/bin/chromium';
/**
 * Skips a test in Firefox. Needed for bodies of requests, which WebDriver BiDi cannot show. A function, because
 * programs without Jest start browsers too.
 */
export const itInChromium = () => (isFirefox ? it.skip : it);

const switches = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Blocks name lookups, so that only loopback is reachable.
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
];

/** The first five block name lookups: they select a proxy that does not exist, except for loopback. */
const preferences = {
  'network.proxy.type': 1,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  'ui.primaryPointerCapabilities': 6, // a mouse, which headless Firefox lacks
};

/** Reports each breach of the page's content security policy to the console, with a unique prefix. */
const breachTeller = `document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('breach of ' + violatedDirective + ' by ' + blockedURI));`;

/** Headless browser with an empty profile and one page. */
export class Browser implements AsyncDisposable {
  readonly page: Page;
  /** Requested URLs, except `data:`. */
  readonly requests: URL[] = [];
  /** Warnings, errors and uncaught exceptions of the page. */
  readonly complaints: string[] = [];
  readonly #context: BrowserContext;
  readonly #profile: AsyncDisposable;

  constructor(context: BrowserContext, page: Page, profile: AsyncDisposable) {
    this.#context = context;
    this.#profile = profile;
    this.page = page;
    context.on('request', (request) => {
      const url = new URL(request.url());
      if (url.protocol !== 'data:') this.requests.push(url);
    });
    page.on('console', (message) => {
      const isOfIcon = message.location().url.endsWith('/favicon.ico'); // requested by every browser
      if (['error', 'warning'].includes(message.type()) && !isOfIcon) this.complaints.push(message.text());
    });
    page.on('pageerror', (error) => this.complaints.push(error.message));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
    await this.#profile[Symbol.asyncDispose]();
  }
}

export async function startBrowser(): Promise<Browser> {
  const profile = await temporaryFolder();
  const context = await (isFirefox ? launchFirefox(profile.path) : launchChromium(profile.path));
  await context.addInitScript(breachTeller);
  return new Browser(context, context.pages()[0] ?? (await context.newPage()), profile);
}

function launchChromium(profile: string): Promise<BrowserContext> {
  return chromium.launchPersistentContext(profile, { executablePath: browserProgram, headless: true, args: switches });
}

/** Drives Firefox through WebDriver BiDi, like an installed one. */
function launchFirefox(profile: string): Promise<BrowserContext> {
  return firefox.launchPersistentContext(profile, {
    channel: 'moz-firefox',
    executablePath: browserProgram,
    headless: true,
    firefoxUserPrefs: preferences,
  });
}
