// The tree that adapts, moment by moment: the bases as boxes, the threads as triangles, and a line through the history that says when.
'use strict';

larder.tree = () => {
  const {svg, html, n, clamp, short, figure} = larder;
  const {recording, frame} = larder.read('tree-data');
  const [WIDTH, HEIGHT, BOTTOM] = [760, 190, 160];
  const [first, last] = recording.keys;
  const x = key => frame.left + clamp((key - first) / (last - first || 1), 0, 1) * (frame.right - frame.left);

  // --- every moment: an event, or a sample of all bases. Between samples, events carry the bases on.

  const split = (bases, event) => {
    const at = bases.findLastIndex(base => base.from <= event.keys[0]);
    if (at < 0 || event.at_key === null) return bases;
    const [left, right] = event.becomes, old = bases[at], half = Math.round(event.entries / 2);
    const part = (base, from) => ({base, from, depth: old.depth + 1, count: 0, entries: half});
    return [...bases.slice(0, at), part(left, old.from), part(right, event.at_key), ...bases.slice(at + 1)];
  };
  const join = (bases, event) => {
    const [low, high] = event.keys;
    const gone = bases.filter(base => low < base.from && base.from < high);
    return bases.filter(base => !gone.includes(base)).map(base =>
      gone.length && base.base === (bases[bases.indexOf(gone[0]) - 1] ?? {}).base
        ? {...base, base: event.becomes[0], count: 0, depth: Math.max(base.depth - 1, 0), entries: base.entries + gone.reduce((sum, one) => sum + one.entries, 0)} : base);
  };
  const moments = [];
  {
    const times = [...recording.samples.map(sample => ({at: sample.at, sample})), ...recording.events.map(event => ({at: event.at, event}))];
    times.sort((a, b) => a.at - b.at);
    let bases = [{base: 0, from: first, depth: 0, count: 0, entries: 0}], threads = [];
    for (const {at, sample, event} of times) {
      if (sample) ({bases, threads} = sample);
      else bases = (event.event === 'split' ? split : join)(bases, event);
      moments.push({at, event, bases, threads});
    }
    if (!moments.length) moments.push({at: 0, bases, threads});
  }

  // --- the picture of one moment

  const figureOf = document.getElementById('tree'), text = document.getElementById('tree-text');
  const picture = svg('svg', {class: 'plot', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: 0, role: 'img', 'aria-label': 'The bases at one moment; Space plays, Left and Right step'});
  document.getElementById('tree-now').append(picture);
  const history = document.getElementById('tree-history');
  const now = history.appendChild(svg('path', {class: 'now', d: ''}));
  const most = moments.reduce((most, {bases}) => bases.reduce((most, base) => Math.max(most, Math.abs(base.count)), most), 1);
  const deepest = moments.reduce((most, {bases}) => bases.reduce((most, base) => Math.max(most, base.depth), most), 1);
  // What is seen at first is the moment with the most bases.
  let index = moments.reduce((best, {bases}, i) => bases.length > moments[best].bases.length ? i : best, 0);

  const box = (base, end) => {
    const [left, right] = [x(base.from), x(end)], top = 14 + Math.min(base.depth / (deepest + 1), 1) * 90;
    const part = Math.abs(base.count) / most, height = (BOTTOM - top) * part;
    const group = svg('g', {class: base.count > 0 ? 'c1' : 'c0'});
    const shape = (y, h, more) => svg('rect', {x: n(left), y: n(y), width: n(Math.max(right - left, 0.5)), height: n(h), ...more});
    group.append(shape(top, BOTTOM - top, {class: 'base', fill: 'currentColor', 'fill-opacity': 0.07}));
    if (height > 0.5) group.append(shape(BOTTOM - height, height, base.count > 0 ? {fill: 'currentColor', 'fill-opacity': 0.75} : {fill: 'none', stroke: 'currentColor', 'stroke-dasharray': '2 2'}));
    if (right - left > 46) group.append(svg('text', {class: 'tick', x: n((left + right) / 2), y: n(top + 14), 'text-anchor': 'middle'}, '#' + base.base));
    if (right - left > 64) group.append(svg('text', {class: 'tick', x: n((left + right) / 2), y: n(top + 28), 'text-anchor': 'middle'}, short(base.entries) + ' keys'));
    return group;
  };
  const worker = (key, i) => {
    const at = n(x(key));
    return svg('g', {}, svg('path', {class: 'worker', d: `M${at},${BOTTOM + 3}l5,9h-10Z`}), svg('text', {class: 'tick', x: at, y: BOTTOM + 24, 'text-anchor': 'middle'}, i));
  };
  const count = bases => bases.length === 1 ? '1 base' : bases.length + ' bases';
  const said = ({at, event, bases}) => {
    const phase = recording.phases.findLast(phase => phase.at <= at);
    const what = !event ? 'a look at all bases' : event.event === 'split'
      ? `thread ${event.thread} splits base ${event.base} at key ${figure(event.at_key ?? 0)} into ${event.becomes.join(' and ')}; its statistic was ${event.count}, its entries ${figure(event.entries)}`
      : `thread ${event.thread} joins base ${event.base} with ${event.with} to ${event.becomes.join(' and ')}; its statistic was ${event.count}, its entries ${figure(event.entries)}`;
    return `Moment ${index + 1} of ${moments.length}, ${figure(at)} ms: ${what}. ${count(bases)}.${phase ? ' ' + phase.text : ''}`;
  };
  const draw = quiet => {
    const moment = moments[index], {bases, threads, event} = moment;
    picture.replaceChildren(...bases.map((base, i) => box(base, bases[i + 1]?.from ?? last)), ...threads.flatMap((key, i) => key === null ? [] : [worker(key, i)]));
    picture.append(svg('path', {class: 'axis', d: `M${frame.left},${BOTTOM}H${frame.right}`}));
    picture.append(svg('text', {class: 'label', x: 640, y: 30}, count(bases)), svg('text', {class: 'label', x: 640, y: 50}, figure(moment.at) + ' ms'));
    if (event) {
      const [low, high] = event.keys;
      picture.append(svg('path', {class: 'now', d: `M${n(x(low))},8V3H${n(x(high))}V8`}), svg('text', {class: 'label', x: 640, y: 70}, (event.event === 'split' ? '■ ' : '○ ') + event.event));
    }
    const y = n(frame.top + moment.at / frame.end * (frame.bottom - frame.top));
    now.setAttribute('d', `M${frame.left},${y}H742`);
    slider.value = index;
    if (!quiet) text.textContent = said(moment);
    figureOf.dataset.drawn = bases.length;
    figureOf.dataset.moment = index;
  };

  // --- playing: the run takes half a minute at the speed of 1, whatever it took in truth

  let playing = 0, started = 0;
  const speed = html('select', {'aria-label': 'Speed'}, ...[['0.25', 'slow'], ['1', 'normal'], ['4', 'fast']].map(([value, name]) => html('option', {value}, name)));
  speed.value = '1';
  const play = html('button', {type: 'button'}, 'Play');
  const slider = html('input', {type: 'range', id: 'tree-time', min: 0, max: moments.length - 1, value: 0, 'aria-label': 'Moment'});
  const stop = () => { cancelAnimationFrame(playing); playing = 0; play.textContent = 'Play'; draw(); };
  const go = to => { stop(); index = clamp(to, 0, moments.length - 1); draw(); };
  const tick = time => {
    const at = (time - started) * frame.end / 30000 * Number(speed.value);
    let moved = false;
    while (index + 1 < moments.length && moments[index + 1].at <= at) { index++; moved = true; }
    if (moved) draw(true);
    if (index + 1 < moments.length) playing = requestAnimationFrame(tick); else stop();
  };
  const begin = () => {
    if (index + 1 >= moments.length) index = 0;
    play.textContent = 'Pause';
    playing = requestAnimationFrame(time => {
      started = time - moments[index].at / frame.end * 30000 / Number(speed.value);
      tick(time);
    });
  };
  const toggle = () => playing ? stop() : begin();
  speed.onchange = () => { if (playing) { stop(); begin(); } };
  play.onclick = toggle;
  slider.oninput = () => go(Number(slider.value));
  const button = (name, to) => { const made = html('button', {type: 'button'}, name); made.onclick = () => go(to()); return made; };
  document.querySelector('[data-tree-controls]').append(play, button('Step back', () => index - 1), button('Step', () => index + 1), slider, html('label', {}, 'Speed ', speed));
  figureOf.addEventListener('keydown', event => {
    if (event.target.matches('button, select, input, summary') && event.key !== 'Escape') return;
    const to = {ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: moments.length - 1}[event.key];
    if (event.key === ' ') toggle(); else if (to !== undefined) go(to); else return;
    event.preventDefault();
  });
  history.addEventListener('click', event => {
    const box = history.getBoundingClientRect();
    const at = ((event.clientY - box.top) * WIDTH / box.width - frame.top) / (frame.bottom - frame.top) * frame.end;
    go(moments.findLastIndex(moment => moment.at <= at));
  });
  draw();
};
