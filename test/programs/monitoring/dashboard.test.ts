import { families } from '../../support/families.js';
import { expressionsOf, metricsOf, type Panel, readDashboard, readRules } from '../../support/monitoring.js';

const dashboard = readDashboard();
const { panels } = dashboard;
const charts = panels.filter(({ type }) => type !== 'row');
const units = ['none', 'short', 's', 'bytes', 'Bps', 'reqps', 'percentunit'];

function overlap(a: Panel['gridPos'], b: Panel['gridPos']): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

describe('The dashboard', () => {
  it('is of the classic schema, with a data source, a job and instances to choose', () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36);
    expect(dashboard.templating.list.map(({ name, type }) => [name, type])).toEqual([
      ['datasource', 'datasource'],
      ['job', 'query'],
      ['instance', 'query'],
    ]);
  });

  it('goes from the state to the resources, row by row', () => {
    const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect(rows.map((title) => title.replace(/:.*/, ''))).toEqual([
      'State',
      'RED',
      'Queue',
      'Model CLI',
      'Conversations',
      'USE',
    ]);
  });

  it('has no id and no title twice', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  });

  it('lays out its panels side by side', () => {
    const cells = panels.map(({ gridPos }) => gridPos);
    expect(cells.filter(({ x, w }) => x < 0 || x + w > 24)).toEqual([]);
    const clashes = panels.filter((panel, index) =>
      panels.slice(index + 1).some((other) => overlap(panel.gridPos, other.gridPos)),
    );
    expect(clashes.map(({ title }) => title)).toEqual([]);
  });

  it.each(charts.map((panel) => [panel.title, panel] as const))(
    'tells in "%s" what it shows, and in which unit',
    (_, panel) => {
      const datasource = { type: 'prometheus', uid: `\${datasource}` };
      expect(panel.title).toMatch(/^[A-Z].{2,30}$/);
      expect(panel.description).toMatch(/^[A-Z0-9].{5,}\.$/);
      expect(units).toContain(panel.fieldConfig?.defaults.unit);
      expect(panel.datasource).toEqual(datasource);
      expect(panel.targets?.length).toBeGreaterThan(0);
      for (const target of panel.targets ?? []) {
        expect(target.datasource).toEqual(datasource);
        if (panel.type !== 'table') expect(target.legendFormat).toMatch(/\S/);
      }
      const refs = panel.targets?.map(({ refId }) => refId);
      expect(new Set(refs).size).toBe(refs?.length);
    },
  );

  it('keeps every expression to the job that was chosen', () => {
    for (const expr of expressionsOf(dashboard)) expect(expr).toContain('job="$job"');
    const selectors =
      expressionsOf(dashboard)
        .join('\n')
        .match(/model_api_\w+\{[^}]*\}/g) ?? [];
    expect(selectors.filter((selector) => !selector.includes('{job="$job",instance=~"$instance"'))).toEqual([]);
    const windows = expressionsOf(dashboard).flatMap((expr) => expr.match(/\[[^\]]*\]/g) ?? []);
    expect([...new Set(windows)]).toEqual(['[$__rate_interval]']);
  });

  it('shows every family of the service, and what rules.yml records of failures', () => {
    const shown = new Set(
      expressionsOf(dashboard)
        .flatMap(metricsOf)
        .map((name) => name.replace(/^model_api_|_(bucket|sum|count)$/g, '')),
    );
    expect(Object.keys(families).filter((family) => !shown.has(family))).toEqual([]);
    const recorded = readRules('rules.yml').map(({ record }) => record);
    expect([...shown].filter((name) => name.includes(':') && !recorded.includes(name))).toEqual([]);
  });
});
