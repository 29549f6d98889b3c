import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../basics/folder.js';

/** Keys file for an operator and two programs. */
export interface NamedKeys extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
}

const options = { operator: 'scopes=ask+chat+admin', alice: 'scopes=ask+chat', bob: 'scopes=ask+chat' } as const;
export type KeyHolder = keyof typeof options;

export function keyOf(holder: string): string {
  return `the-key-of-${holder}-in-this-test`;
}

export function headersOf(holder: string): Record<string, string> {
  return { 'x-api-key': keyOf(holder) };
}

/** `others`: names of further programs. */
export async function writeNamedKeys(others: readonly string[] = []): Promise<NamedKeys> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'keys');
  const all = [...Object.entries(options), ...others.map((name) => [name, options.bob] as const)];
  const lines = all.map(([name, rest]) => `${name}:sha256:${digestOf(keyOf(name))}:${rest}\n`);
  await writeFile(path, lines.join(''), { mode: 0o600 });
  return { env: { MODEL_API_KEYS_FILE: path }, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

/** Enters the key in the console's dialog. */
export async function enterKey(page: Page, key: string): Promise<void> {
  await page.getByLabel('Your key').fill(key);
  await page.getByRole('button', { name: 'Continue' }).click();
}

/** Signs out in the menu of the signed-in client. */
export async function forgetKey(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^You: / }).click();
  const forget = page.getByRole('button', { name: 'Forget the key' });
  await forget.click();
  await forget.waitFor({ state: 'detached' });
}
