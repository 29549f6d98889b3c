import { type AgentSources, agentLine } from '../../../src/primary/agent/agent-line.js';
import type { Phase } from '../../../src/shared/phase.js';

type Status = AgentSources['clis'][number]['health']['checks']['current']['status'];

function line(slots: Partial<AgentSources['slots']> = {}, phase: Phase = 'ready', ...statuses: Status[]): string {
  const clis = (statuses.length > 0 ? statuses : ['ready' as const]).map((status) => ({
    health: { checks: { current: { status } } },
  }));
  return agentLine({
    supervisor: { phase },
    clis,
    slots: { active: 0, waiting: 0, limits: { maxActive: 4 }, ...slots },
  });
}

describe('what a front is told', () => {
  it.each([
    [0, 0, 'up ready 100%'],
    [1, 0, 'up ready 80%'],
    [4, 0, 'up ready 50%'],
    [4, 4, 'up ready 33%'],
    [4, 100, 'up ready 4%'],
    [4, 1_000_000, 'up ready 1%'], // 0 would be a drain
  ])('counts %d that run and %d that wait, on four slots', (active, waiting, said) => {
    expect(line({ active, waiting })).toBe(said);
  });

  it('falls more slowly than the load rises, so that a front that is late never overshoots', () => {
    const loads = Array.from({ length: 200 }, (_, load) => load);
    const attracted = loads.map((load) => (4 / (4 + load)) * load); // what leastconn gives it is its weight times this
    expect(attracted).toEqual(attracted.toSorted((a, b) => a - b));
  });

  it('sends everybody elsewhere, those who are tied to it too, while it starts, drains or can run nothing', () => {
    expect(line({}, 'starting')).toBe('down #starting');
    expect(line({}, 'draining')).toBe('drain down #draining');
    expect(line({}, 'stopped')).toBe('drain down #draining');
    expect(line({}, 'ready', 'not_ready')).toBe('down #model CLI not ready');
  });

  it('takes all of that back, also before the first check of the model CLI is over', () => {
    expect(line({}, 'ready', 'unknown')).toBe('up ready 100%');
    expect(line({}, 'ready', 'unknown', 'not_ready')).toBe('up ready 100%');
    expect(line({}, 'ready', 'not_ready', 'ready')).toBe('up ready 100%');
    expect(line({}, 'ready', 'not_ready', 'not_ready')).toBe('down #model CLI not ready');
  });
});
