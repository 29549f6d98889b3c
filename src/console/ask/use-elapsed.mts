import { useEffect, useState } from 'preact/hooks';
import { useParts } from '../context.mjs';

/** Milliseconds since then, told again every second. */
export function useElapsed(sinceMs: number): number {
  const { clock } = useParts();
  const [nowMs, setNowMs] = useState(() => clock.now());
  useEffect(() => clock.every(1000, () => setNowMs(clock.now())), [clock]);
  return Math.max(0, nowMs - sinceMs);
}
