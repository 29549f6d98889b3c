import { z } from 'zod';
import { type Rate, type Scope, scopes } from './api-keys.js';
import { modelNamePattern } from './values.js';

/** Parsers of the values of options. Each throws an error whose message does not repeat the value. */

/** Day in UTC, such as 2026-01-31. */
export const dayQuery = z.iso.date();
export const digestPattern = /^[0-9a-f]{64}$/i;
export const keyNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const nameForm = 'must be 1 to 64 letters, digits and . _ -';

export function readScopes(text: string): Scope[] {
  const named = text.split('+');
  if (!named.every(isScope)) throw new Error(`must be one or more of ${scopes.join(', ')}, joined by +`);
  return scopes.filter((scope) => named.includes(scope));
}

function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}

export function readRate(text: string): Rate {
  const [, requests = '', seconds = ''] = /^(\d{1,9})\/(\d{1,5})$/.exec(text) ?? [];
  const rate = { maxRequests: Number(requests), windowMs: Number(seconds) * 1000 };
  if (rate.maxRequests > 0 && rate.windowMs > 0 && rate.windowMs <= 86_400_000) return rate;
  throw new Error('must be requests/seconds, such as 60/60, and at most a day');
}

export function readCount(text: string, min: number, max: number): number {
  const count = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= min && count <= max) return count;
  throw new Error(`must be a whole number from ${min} to ${max}`);
}

export function readGroup(text: string): string {
  if (keyNamePattern.test(text)) return text;
  throw new Error(nameForm);
}

export function readModels(text: string): string[] {
  const models = text.split('+');
  if (models.every((model) => modelNamePattern.test(model))) return models;
  throw new Error('must be names of models, joined by +');
}

/** Returns the start of a day in UTC, in milliseconds since the epoch. */
export function readDay(text: string): number {
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));
  if (isDay && new Date(text).toISOString().startsWith(text)) return Date.parse(text);
  throw new Error('must be a day such as 2027-01-31');
}

export function readPrevious(text: string): { readonly digest: string; readonly expiresAt: number } {
  const [digest = '', day = ''] = text.split('/', 2);
  if (digestPattern.test(digest)) return { digest: digest.toLowerCase(), expiresAt: readDay(day) };
  throw new Error('must be the 64 hexadecimal digits of the old key, / and a day');
}

/** Returns a day in UTC. */
export function dayText(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
