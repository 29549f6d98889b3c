import { useEffect, useState } from 'preact/hooks';
import { useParts } from './context.mjs';

/** The time, drawn again each second. */
export function useNow(): number {
  const { clock } = useParts();
  const [now, setNow] = useState(() => clock.now());
  useEffect(() => clock.every(1000, () => setNow(clock.now())), [clock]);
  return now;
}
