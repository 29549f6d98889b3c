import { type BrowserContext, chromium, firefox, type Page } from 'playwright-core';
import { temporaryFolder } from './folder.js';

/** The browser that the tests use: a variant of the suite names another. */
export const isFirefox = process.env.TESTED_BROWSER === 'firefox';
export const browserProgram = isFirefox ? '/usr/bin/firefox-esr' : '/usr/bin/chromium';
/** For what a test can't see through WebDriver BiDi: the bodies of requests. A function, because programs without Jest start browsers too. */
export const itInChromium = () => (isFirefox ? it.skip : it);

const switches = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // No name can be looked up: whatever is not on loopback can't be reached.
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
];

/** The first five: no name can be looked up here either. Firefox never takes a proxy for loopback, and at this address there is none. */
const preferences = {
  'network.proxy.type': 1,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  'ui.primaryPointerCapabilities': 6, // a mouse, which a headless Firefox does not assume
};

/** Tells of every breach of the page's content security policy, in a form that can't be taken for anything else. */
const breachTeller = `document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('breach of ' + violatedDirective + ' by ' + blockedURI));`;

/** A headless browser with an empty profile and one page. */
export class Browser implements AsyncDisposable {
  readonly page: Page;
  /** Every address that was asked for, but for `data:`. */
  readonly requests: URL[] = [];
  /** Everything the page complained about. */
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
      const isOfIcon = message.location().url.endsWith('/favicon.ico'); // which a browser asks for beside any answer
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
  return chromium.launchPersistentContext(profile, {
    executablePath: browserProgram,
    headless: true,
    args: switches,
  });
}

/** By WebDriver BiDi, as an installed Firefox is driven. */
function launchFirefox(profile: string): Promise<BrowserContext> {
  return firefox.launchPersistentContext(profile, {
    channel: 'moz-firefox',
    executablePath: browserProgram,
    headless: true,
    firefoxUserPrefs: preferences,
  });
}
