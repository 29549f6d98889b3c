import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { describeWith } from '../../support/basics/needs.js';
import { tableUnder } from '../../support/documents/markdown.js';
import { monitoringFolder, readAlertTests, readRules } from '../../support/documents/monitoring.js';
import { startService, twoWorkers } from '../../support/service/service.js';

const promtool = '/usr/bin/promtool';
const run = promisify(execFile);
const alerts = readRules('alerts.yml');
/** Path of the page in the Debian package. */
const page = 'file:///usr/share/doc/prompt-relay/docs/operations.md';

function file(name: string): string {
  return join(monitoringFolder, name);
}

describeWith(promtool)('promtool', () => {
  it('accepts the rules and the scrape configuration', async () => {
    const { stdout } = await run(promtool, ['check', 'rules', file('rules.yml'), file('alerts.yml')]);
    expect(stdout).toContain(`${readRules('rules.yml').length} rules found`);
    expect(stdout).toContain(`${alerts.length} rules found`);
    await run(promtool, ['check', 'config', '--syntax-only', file('scrape.yml')]);
  });

  it('fires and silences every alert, and records every rule, as their tests expect', async () => {
    const { stdout } = await run(promtool, ['test', 'rules', file('alerts.test.yml'), file('rules.test.yml')]);
    expect(stdout.match(/SUCCESS/g)).toHaveLength(2);
  });

  it('finds no fault in a live scrape', async () => {
    await using service = await startService({ env: twoWorkers });
    await service.post('/ask', { prompt: 'Hello' });
    await service.post('/ask', { prompt: '' });
    const { text } = await service.get('/metrics');
    const check = run(promtool, ['check', 'metrics']);
    check.child.stdin?.end(text);
    expect(await check).toEqual({ stdout: '', stderr: '' });
  });
});

describe('Every alert', () => {
  it.each(alerts.map((rule) => [rule.alert, rule] as const))(
    '%s has a severity, a description, and a link to help',
    (name, { labels, annotations }) => {
      expect(name).toMatch(/^PromptRelay[A-Z]\w+$/);
      expect(['critical', 'warning']).toContain(labels?.severity);
      expect(annotations).toEqual({
        summary: expect.stringMatching(/^\S.{15,}/),
        description: expect.stringMatching(/^\S.{30,}\.$/),
        runbook_url: `{{ or $externalLabels.prompt_relay_runbook "${page}" }}#${name?.toLowerCase()}`,
      });
    },
  );

  it('is documented with its severity', () => {
    const documented = tableUnder('Alerts', 'docs/monitoring.md').map(([name, severity]) => [name, severity]);
    expect(documented).toEqual(alerts.map(({ alert, labels }) => [alert, labels?.severity]));
  });

  it('has tests in which it fires, and tests in which it does not fire', () => {
    const checks = readAlertTests();
    const names = (fires: boolean) =>
      new Set(checks.filter((check) => check.exp_alerts.length > 0 === fires).map(({ alertname }) => alertname));
    expect([...names(true)].sort()).toEqual(alerts.map(({ alert }) => alert).sort());
    expect([...names(false)].sort()).toEqual(alerts.map(({ alert }) => alert).sort());
  });
});

describe('Every rule', () => {
  it('has a test', () => {
    const tests = readFileSync(file('rules.test.yml'), 'utf8');
    const untested = readRules('rules.yml').filter(({ record }) => !tests.includes(`${record}`));
    expect(untested).toEqual([]);
  });
});

describe('The scrape configuration', () => {
  it('uses the job name that the alerts select', () => {
    const { scrape_configs: configs } = parse(readFileSync(file('scrape.yml'), 'utf8'));
    const down = alerts.find(({ alert }) => alert === 'PromptRelayDown');
    expect(configs).toHaveLength(1);
    expect(down?.expr).toContain(`up{job="${configs[0].job_name}"}`);
  });
});
