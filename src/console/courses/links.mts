import { html } from 'htm/preact';
import { useLoad } from '../base/context.mjs';
import { hrefOf } from '../base/router.mjs';
import { isAdministrator, useCaller } from '../ui/caller.mjs';
import type { ShownCourse } from './shown-course.mjs';

/** Links to the courses that the user administers; nothing if there are none. */
export function CourseLinks() {
  const caller = useCaller();
  const isKnown = typeof caller === 'object' && caller !== null && caller.scopes !== null;
  const [loaded] = useLoad<{ readonly courses: readonly ShownCourse[] }>(isKnown ? '/courses' : null);
  if (loaded.state !== 'ready' || loaded.value.courses.length === 0) return null;
  return html`<section class="card" aria-labelledby="courses">
    <h2 id="courses">${isAdministrator(caller) ? 'Courses' : 'Your course'}</h2>
    <ul>${loaded.value.courses.map(({ name }) => html`<li><a href=${hrefOf('course', { name })}>${name}</a></li>`)}</ul>
  </section>`;
}
