import type { ReadinessBody } from '../../shared/api/health.js';

export const triggerTexts: Readonly<Record<ReadinessBody['trigger'], string>> = {
  start: 'at the start',
  interval: 'as planned',
  forced: 'asked for',
  failure: 'after a failed job',
};

export function wordOf({ status }: ReadinessBody): string {
  return status.replace('_', ' ');
}
