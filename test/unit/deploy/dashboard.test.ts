import { families } from '../../support/documents/families.js';
import { expressionsOf, metricsOf, type Panel, readDashboard, readRules } from '../../support/documents/monitoring.js';

const dashboard = readDashboard();
const { panels } = dashboard;
const charts = panels.filter(({ type }) => type !== 'row');
const units = ['none', 'short', 's', 'bytes', 'Bps', 'reqps', 'percentunit'];

function overlap(a: Panel['gridPos'], b: Panel['gridPos']): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

describe('The dashboard', () => {
  it('uses the classic schema, with variables for the data source, the job and the instances', () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36);
    expect(dashboard.templating.list.map(({ name, type }) => [name, type])).toEqual([
      ['datasource', 'datasource'],
      ['job', 'query'],
      ['instance', 'query'],
    ]);
  });

  it('has rows from the state to the resources', () => {
    const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect(rows.map((title) => title.replace(/:.*/, ''))).toEqual([
      'State',
      'Requests and jobs',
      'Queue',
      'Model CLI',
      'Conversations',
      'Resources',
    ]);
  });

  it('has no duplicate id or title', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  });

  it('lays out its panels without overlap', () => {
    const cells = panels.map(({ gridPos }) => gridPos);
    expect(cells.filter(({ x, w }) => x < 0 || x + w > 24)).toEqual([]);
    const clashes = panels.filter((panel, index) =>
      panels.slice(index + 1).some((other) => overlap(panel.gridPos, other.gridPos)),
    );
    expect(clashes.map(({ title }) => title)).toEqual([]);
  });

  it.each(charts.map((panel) => [panel.title, panel] as const))(
    'describes in "%s" the content and the unit',
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

  it('limits every expression to the selected job', () => {
    for (const expr of expressionsOf(dashboard)) expect(expr).toContain('job="$job"');
    const selectors =
      expressionsOf(dashboard)
        .join('\n')
        .match(/model_api_\w+\{[^}]*\}/g) ?? [];
    expect(selectors.filter((selector) => !selector.includes('{job="$job",instance=~"$instance"'))).toEqual([]);
    const windows = expressionsOf(dashboard).flatMap((expr) => expr.match(/\[[^\]]*\]/g) ?? []);
    expect([...new Set(windows)]).toEqual(['[$__rate_interval]']);
  });

  it('shows every metric family of the service, and the failures recorded by rules.yml', () => {
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
