import type { Locator, Page } from 'playwright-core';

/** Page object of the page Ask. */
export class AskPage {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  get message(): Locator {
    return this.page.getByLabel('Message');
  }

  get turns(): Locator {
    return this.page.locator('article');
  }

  get lastAnswer(): Locator {
    return this.turns.last().locator('.answer');
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name });
  }

  async send(text: string): Promise<void> {
    await this.message.fill(text);
    await this.button('Send').click();
  }

  /** Resolves with the text of the answer when it is complete. */
  async answer(): Promise<string> {
    await this.lastAnswer.getByRole('button', { name: 'Copy' }).last().waitFor();
    return this.lastAnswer.innerText();
  }

  /** Resolves with the id of the conversation when the address has it, which is after the answer is complete. */
  async conversationId(): Promise<string> {
    await this.page.waitForURL(/conversation=/);
    return /conversation=([^&]+)/.exec(this.page.url())?.[1] ?? '';
  }

  async ask(text: string): Promise<string> {
    await this.send(text);
    return this.answer();
  }
}

/** Image with one red pixel. */
export const pngBytes = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==',
  'base64',
);
