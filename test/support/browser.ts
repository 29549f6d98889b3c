import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { temporaryFolder } from './folder.js';

export const chromiumProgram = '/usr/bin/chromium';

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

/** Tells of every breach of the page's content security policy, in a form that can't be taken for anything else. */
const breachTeller = `document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('breach of ' + violatedDirective + ' by ' + blockedURI));`;

/** A headless Chromium with an empty profile and one page. */
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
  const context = await chromium.launchPersistentContext(profile.path, {
    executablePath: chromiumProgram,
    headless: true,
    args: switches,
  });
  await context.addInitScript(breachTeller);
  return new Browser(context, context.pages()[0] ?? (await context.newPage()), profile);
}
