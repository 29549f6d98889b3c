import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from './sources.js';

export const monitoringFolder = join(root, 'deploy', 'monitoring');

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface AlertTest {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}

interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat: string;
  readonly datasource: unknown;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: unknown;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly Target[];
}

export interface Dashboard {
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
}

/** Returns the rules of one file, in order. */
export function readRules(file: string): readonly Rule[] {
  return readYaml<{ groups: { rules: Rule[] }[] }>(file).groups.flatMap(({ rules }) => rules);
}

/** Returns every alert check of the unit tests. */
export function readAlertTests(): readonly AlertTest[] {
  const { tests } = readYaml<{ tests: { alert_rule_test?: AlertTest[] }[] }>('alerts.test.yml');
  return tests.flatMap(({ alert_rule_test: checks = [] }) => checks);
}

export function readDashboard(): Dashboard {
  return JSON.parse(readFileSync(join(monitoringFolder, 'dashboard.json'), 'utf8')) as Dashboard;
}

/** Returns the expressions of all panels, unchanged. */
export function expressionsOf({ panels }: Dashboard): string[] {
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

/** Returns the metrics in an expression, without selectors. */
export function metricsOf(expr: string): string[] {
  return expr.match(/\b[a-z_]*:?model_api_[a-z0-9_:]+/g) ?? [];
}

function readYaml<Document>(file: string): Document {
  return parse(readFileSync(join(monitoringFolder, file), 'utf8')) as Document;
}
