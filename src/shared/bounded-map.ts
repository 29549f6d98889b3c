/** Sets an entry as the newest one of a map, and removes the oldest one if the map then has more than `max` entries. */
export function setNewest<K, V>(map: Map<K, V>, key: K, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > max) map.delete(map.keys().next().value as K);
}
