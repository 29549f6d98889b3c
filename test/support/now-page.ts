import type { Locator, Page } from 'playwright-core';

/** The page Now of the console, as a user finds things on it. */
export class NowPage {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  /** A part of it, by its heading. */
  card(title: string): Locator {
    return this.page.getByRole('region', { name: title, exact: true });
  }

  get busySlots(): Locator {
    return this.page.locator('.slot.busy');
  }

  /** Resolves when this text stands on the page. */
  async says(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).first().waitFor();
  }

  async recheck(): Promise<void> {
    await this.page.getByRole('button', { name: 'Check now' }).click();
  }
}
