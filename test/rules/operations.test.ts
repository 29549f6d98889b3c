import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventResponses } from '../../tools/event-responses.js';
import { families } from '../support/documents/families.js';
import { root } from '../support/documents/sources.js';
import { allLogEvents, allVariables } from '../support/documents/tables.js';

const page = 'docs/operations.md';
const text = readFileSync(join(root, page), 'utf8');
const alertsFile = join(root, 'deploy', 'monitoring', 'alerts.yml');

function headings(): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
}

/** Informational events, which need no action. */
const harmless = [
  'service_start',
  'service_ready',
  'store_opened',
  'store_back',
  'client_purged',
  'accounts_loaded',
  'job_ended_by_admin',
  'job_fell_back',
  'slots_reserved',
  'reservation_cancelled',
  'cli_text_ignored',
  'login_renewed',
  'reload_start',
  'reload_complete',
  'http_request_completed',
  'key_changed',
  'key_lent',
  'key_made',
  'key_removed',
  'key_rotated',
  'keys_loaded',
  'lent_key_ended',
  'background_job_ended',
  'job_ended',
  'breaker_closed',
  'leaving_front',
  'handing_over',
  'trace_export_back',
  'webhook_back',
  'shutdown_start',
  'shutdown_complete',
];

describe('The page on operations', () => {
  it('links to a table with the response to every log event, except those that need none', () => {
    const events = eventResponses.flatMap(([names]) => names);
    expect([...events, ...harmless].toSorted()).toEqual(Object.keys(allLogEvents).toSorted());
  });

  it('names only existing metrics', () => {
    const named = [...text.matchAll(/`model_api_([a-z_]+)/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !(name in families))).toEqual([]);
  });

  it('names only existing variables', () => {
    const named = [...text.matchAll(/MODEL_[A-Z_]+/g)].map(([name]) => name);
    expect(named.filter((name) => !(name in allVariables))).toEqual([]);
  });

  const withAlerts = existsSync(alertsFile) ? it : it.skip;
  withAlerts('has a section for every alert, and for no other', () => {
    const alerts = [...readFileSync(alertsFile, 'utf8').matchAll(/- alert: *(\w+)/g)].map(([, name = '']) => name);
    const sections = headings().filter((heading) => heading.startsWith('PromptRelay'));
    expect(alerts.length).toBeGreaterThan(0);
    expect(sections.toSorted()).toEqual(alerts.toSorted());
  });
});
