// Draws each plot again as its reader wants it: series shown or not, logarithmic or linear, as measured or beside one series; tells figures to the
// pointer and to the arrow keys. Shapes, colours and axes follow the same rules as svg.rs and scale.rs, which drew the page before.
'use strict';

addEventListener('error', event => { document.documentElement.dataset.error = event.message; });

const larder = (() => {
  const read = id => JSON.parse(document.getElementById(id).textContent);
  const {dashes, markers} = read('style-data');
  const [WIDTH, HEIGHT, TOP, RIGHT, BOTTOM, LEFT, CROWDED, LETTER] = [760, 380, 14, 18, 46, 64, 40, 6.4];

  // --- elements and numbers

  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const svg = (name, attributes = {}, ...children) => fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
  const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const n = number => String(Math.round(number * 10) / 10);
  const clamp = (number, low, high) => Math.min(Math.max(number, low), high);
  const plain = (number, digits) => {
    if (!number) return '0';
    const decimals = clamp(digits - 1 - Math.floor(Math.log10(Math.abs(number))), 0, 12);
    const text = number.toFixed(decimals);
    return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
  };
  const short = number => {
    for (const [size, unit] of [[1e9, ' G'], [1e6, ' M'], [1e3, ' k']]) if (Math.abs(number) >= size) return plain(number / size, 3) + unit;
    return plain(number, 3);
  };
  const figure = number => plain(number, 4).replace(/^-?\d{5,}/, whole => whole.replace(/\B(?=(\d{3})+$)/g, '\u202f'));

  // --- axes

  const linear = (low, high) => {
    const span = high > low ? high - low : 1;
    const rough = 10 ** Math.floor(Math.log10(span / 5));
    const step = ([1, 2, 5, 10].find(factor => span / (factor * rough) <= 6) ?? 10) * rough;
    const [first, last] = [Math.floor(low / step), Math.ceil((low + span) / step)];
    const ticks = Array.from({length: last - first + 1}, (_, i) => (first + i) * step);
    return {ticks, at: figure => (figure - first * step) / ((last - first) * step)};
  };
  const logarithmic = (least, most) => {
    const decades = Math.log10(most / least), slack = 1 + 1e-9, steps = [];
    const within = decades < 1 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : decades < 3 ? [1, 2, 5] : [1];
    for (let ten = Math.floor(Math.log10(least)); ten <= Math.ceil(Math.log10(most)); ten++) steps.push(...within.map(factor => factor * 10 ** ten));
    const low = steps.findLast(step => step <= least * slack) ?? least;
    let high = steps.find(step => step * slack >= most) ?? most;
    if (high <= low) high = low * 2;
    const ticks = steps.filter(step => low <= step && step <= high * slack);
    return {ticks, at: figure => figure > 0 ? Math.log(figure / low) / Math.log(high / low) : null};
  };
  const fit = (figures, log) => {
    const good = figures.filter(figure => Number.isFinite(figure) && (!log || figure > 0));
    if (!good.length) return linear(0, 1);
    const least = good.reduce((a, b) => Math.min(a, b)), most = good.reduce((a, b) => Math.max(a, b));
    return log ? logarithmic(least, most) : linear(Math.min(least, 0), most);
  };

  // --- one plot

  class Plot {
    constructor(figure, chart) {
      Object.assign(this, {figure, chart, log: chart.y_scale === 'log', base: -1, at: null});
      this.shown = new Set(chart.series.keys());
      chart.series.forEach((series, i) => { if (series.from === 'other') this.shown.delete(i); });
      this.svg = figure.querySelector('.canvas > svg');
      this.svg.setAttribute('tabindex', '0');
      this.svg.setAttribute('aria-describedby', 'plot-keys');
      this.tip = figure.querySelector('.canvas').appendChild(html('div', {class: 'tip', hidden: ''}));
      this.live = figure.appendChild(html('p', {class: 'skip', 'aria-live': 'polite'}));
      this.controls();
      this.legend();
      this.svg.addEventListener('pointermove', event => this.point(event));
      this.svg.addEventListener('pointerleave', () => this.tell(null));
      this.svg.addEventListener('blur', () => this.tell(null));
      this.svg.addEventListener('keydown', event => this.key(event));
      this.draw();
    }

    controls() {
      const {chart} = this, bar = this.figure.querySelector('[data-controls]');
      const scale = html('div', {role: 'group', 'aria-label': 'Scale'});
      for (const [text, log] of [['Logarithmic', true], ['Linear', false]]) {
        const button = html('button', {type: 'button', 'data-log': log, 'aria-pressed': this.log === log}, text);
        button.onclick = () => {
          this.log = log;
          scale.querySelectorAll('button').forEach(other => other.setAttribute('aria-pressed', other === button));
          this.draw();
        };
        scale.append(button, ' ');
      }
      const choose = html('select', {}, html('option', {value: -1}, 'as measured'));
      chart.series.forEach((series, i) => {
        if (series.from === 'run' && chart.series.length > 1) choose.append(html('option', {value: i}, 'beside ' + series.name));
      });
      choose.onchange = () => { this.base = Number(choose.value); this.draw(); };
      const every = html('button', {type: 'button'}, 'Show all'), none = html('button', {type: 'button'}, 'Hide all');
      every.onclick = () => this.show(chart.series.map((_, i) => i));
      none.onclick = () => this.show([]);
      bar.append(scale, html('label', {}, 'Figures ', choose), every, none);
    }

    legend() {
      this.buttons = [...this.figure.querySelectorAll('[data-series]')];
      this.buttons.forEach((button, i) => {
        button.title = 'Shows or hides it; with Shift, shows it alone';
        button.onclick = event => {
          if (event.shiftKey) return this.show([i]);
          const now = new Set(this.shown);
          if (!now.delete(i)) now.add(i);
          this.show(now);
        };
      });
    }

    show(which) {
      this.shown = new Set(which);
      this.buttons.forEach((button, i) => button.setAttribute('aria-pressed', this.shown.has(i)));
      this.tell(null);
      this.draw();
    }

    // What is to be drawn: the figures of the shown series, divided by those of the base, if one was chosen.
    figures() {
      const {chart, base} = this;
      const under = base < 0 ? null : new Map(chart.series[base].points.map(spot => [spot.x, spot.y]));
      return [...this.shown].sort((a, b) => a - b).map(i => {
        const series = chart.series[i];
        const spots = series.points.flatMap(spot => {
          if (!under) return [spot];
          const by = under.get(spot.x);
          return by ? [{...spot, y: spot.y / by, low: spot.low / by, high: spot.high / by}] : [];
        });
        return {series, i, spots};
      });
    }

    frame(drawn) {
      const {chart} = this, spots = drawn.flatMap(one => one.spots);
      const y = fit(spots.flatMap(spot => [spot.low, spot.y, spot.high]), this.log);
      if (chart.x_scale === 'names') {
        const longest = Math.max(0, ...chart.names.map(name => [...name].length));
        const rows = Math.max(chart.names.length, 1), row = clamp(10 + 8 * chart.series.length, 22, Math.max(700 / rows, 90));
        return {left: clamp(longest * LETTER + 18, LEFT, 330), right: WIDTH - RIGHT, top: TOP, bottom: TOP + row * rows, row, y, x: null, crowded: false};
      }
      const x = fit(spots.map(spot => spot.x), chart.x_scale === 'log');
      if (spots.every(spot => Number.isInteger(spot.x))) x.ticks = x.ticks.filter(Number.isInteger);
      const places = new Set(chart.series.flatMap(series => series.points.map(spot => spot.x))).size;
      return {left: LEFT, right: WIDTH - RIGHT, top: TOP, bottom: HEIGHT - BOTTOM, row: 0, y, x, crowded: places > CROWDED};
    }

    draw() {
      const drawn = this.figures(), frame = this.frame(drawn);
      const across = part => frame.left + part * (frame.right - frame.left), up = part => frame.bottom - part * (frame.bottom - frame.top);
      const place = (spot, lane) => {
        const parts = [frame.y.at(spot.y), frame.y.at(spot.low) ?? frame.y.at(spot.y), frame.y.at(spot.high)];
        if (parts.includes(null)) return null;
        if (!frame.x) return parts.map(part => [across(part), frame.top + (spot.x + lane) * frame.row]);
        const x = frame.x.at(spot.x);
        return x === null ? null : parts.map(part => [across(x), up(part)]);
      };
      this.svg.setAttribute('viewBox', `0 0 ${WIDTH} ${n(frame.bottom + BOTTOM)}`);
      this.svg.replaceChildren(...this.axes(frame, across, up));
      this.spots = [];
      drawn.forEach(({series, i, spots}, lane) => {
        const placed = [];
        for (const spot of spots) {
          const at = place(spot, (lane + 1) / (drawn.length + 1));
          if (!at) continue;
          placed.push(at);
          this.spots.push({x: at[0][0], y: at[0][1], place: spot.x, i, spot});
        }
        this.svg.append(this.lines(series, placed, frame));
      });
      this.cross = this.svg.appendChild(svg('path', {class: 'cross', d: ''}));
      this.figure.dataset.drawn = this.spots.length;
    }

    lines(series, placed, frame) {
      const path = points => points.map(([x, y], i) => `${i ? 'L' : 'M'}${n(x)},${n(y)}`).join('');
      const style = series.style, from = series.from === 'run' ? '' : ' ' + series.from;
      const group = svg('g', {class: `series c${style.colour}${style.ours ? ' ours' : ''}${from}`});
      const dash = series.from === 'run' ? dashes[style.dash] : '1 4';
      if (frame.crowded && series.from === 'run') group.append(svg('path', {class: 'area', d: path([...placed.map(at => at[1]), ...placed.map(at => at[2]).reverse()]) + 'Z'}));
      if (frame.x) group.append(svg('path', {class: 'line', d: path(placed.map(at => at[0])), 'stroke-dasharray': dash || null}));
      if (!frame.crowded) for (const [at, low, high] of placed) {
        if (low[0] !== high[0] || low[1] !== high[1]) group.append(svg('path', {class: 'spread', d: path([low, high])}));
        group.append(svg('path', {class: 'mark', d: markers[style.marker], transform: `translate(${n(at[0])},${n(at[1])})`}));
      }
      return group;
    }

    axes(frame, across, up) {
      const {chart} = this, out = [], middle = (frame.left + frame.right) / 2;
      const words = {less: ' (less is better)', more: ' (more is better)'}[chart.better] ?? '';
      const y_label = (this.base < 0 ? chart.y_label : 'times that of ' + chart.series[this.base].name) + words;
      const text = (name, x, y, words, more = {}) => out.push(svg('text', {class: name, x: n(x), y: n(y), ...more}, words));
      const grid = d => out.push(svg('path', {class: 'grid', d}));
      const below = (axis, x) => axis.ticks.forEach(tick => {
        grid(`M${n(across(axis.at(tick)))},${n(frame.top)}V${n(frame.bottom)}`);
        text('tick', across(axis.at(tick)), frame.bottom + 17, short(tick), {'text-anchor': 'middle'});
      });
      if (frame.x) {
        frame.y.ticks.forEach(tick => {
          const y = up(frame.y.at(tick));
          grid(`M${n(frame.left)},${n(y)}H${n(frame.right)}`);
          text('tick', frame.left - 8, y, short(tick), {dy: 4, 'text-anchor': 'end'});
        });
        below(frame.x);
        text('label', 0, 0, y_label, {transform: `translate(14,${n((frame.top + frame.bottom) / 2)}) rotate(-90)`, 'text-anchor': 'middle'});
      } else {
        below(frame.y);
        chart.names.forEach((name, i) => {
          const y = frame.top + frame.row * i, fits = Math.floor((frame.left - 14) / LETTER), letters = [...name];
          if (i) grid(`M12,${n(y)}H${n(frame.right)}`);
          text('tick', frame.left - 8, y + frame.row / 2, letters.length > fits ? letters.slice(0, fits - 1).join('') + '…' : name, {dy: 4, 'text-anchor': 'end'});
        });
      }
      out.push(svg('path', {class: 'axis', d: `M${n(frame.left)},${n(frame.top)}V${n(frame.bottom)}H${n(frame.right)}`}));
      text('label', middle, frame.bottom + 38, frame.x ? chart.x_label : y_label, {'text-anchor': 'middle'});
      this.area = frame;
      return out;
    }

    // --- figures, told

    point(event) {
      const box = this.svg.getBoundingClientRect(), scale = WIDTH / box.width;
      const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
      const far = spot => (this.area.x ? 2 : 0.5) * Math.abs(spot.x - x) + (this.area.x ? 1 : 3) * Math.abs(spot.y - y);
      let near = null;
      for (const spot of this.spots) if (!near || far(spot) < far(near)) near = spot;
      this.tell(near);
    }

    key(event) {
      const {spots} = this, lying = !this.area.x;
      if (event.key === 'Escape') return this.tell(null);
      const [next, before, better, worse] = lying ? ['ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight'] : ['ArrowRight', 'ArrowLeft', 'ArrowUp', 'ArrowDown'];
      const step = {[next]: 1, [before]: -1}[event.key], rank = {[better]: 1, [worse]: -1}[event.key];
      if ((!step && !rank && !['Home', 'End'].includes(event.key)) || !spots.length) return;
      event.preventDefault();
      const places = [...new Set(spots.map(spot => spot.place))].sort((a, b) => a - b);
      const now = this.at ?? spots[0];
      if (rank) {
        const here = spots.filter(spot => spot.place === now.place).sort((a, b) => lying ? b.x - a.x : b.y - a.y);
        return this.tell(here[clamp(here.indexOf(now) + rank, 0, here.length - 1)]);
      }
      const to = event.key === 'Home' ? 0 : event.key === 'End' ? places.length - 1 : this.at ? places.indexOf(now.place) + step : 0;
      const there = spots.filter(spot => spot.place === places[clamp(to, 0, places.length - 1)]);
      this.tell(there.find(spot => spot.i === now.i) ?? there[0]);
    }

    place(x) { return this.chart.x_scale === 'names' ? this.chart.names[x] : figure(x); }

    label(i) {
      const {name, from} = this.chart.series[i];
      return name + {run: '', published: ' (published)', other: ' (other run)'}[from];
    }

    tell(near) {
      this.at = near;
      this.tip.hidden = !near;
      this.cross.setAttribute('d', '');
      if (!near) { this.live.textContent = ''; return; }
      const unit = this.base < 0 ? ' ' + this.chart.unit : ' times', {spot} = near;
      const spread = at => at.low < at.high ? ` (${figure(at.low)}–${figure(at.high)})` : '';
      const sign = this.chart.better === 'more' ? -1 : 1;
      const here = this.spots.filter(other => other.place === near.place).sort((a, b) => sign * (a.spot.y - b.spot.y));
      const rows = here.map(other => html('tr', other === near ? {class: 'near'} : {}, html('th', {scope: 'row'}, this.label(other.i)), html('td', {}, figure(other.spot.y) + spread(other.spot))));
      this.tip.replaceChildren(html('strong', {}, this.place(near.place)), ` · ${unit.trim()}, best first`, html('table', {}, html('tbody', {}, ...rows)));
      this.live.textContent = `${this.label(near.i)} at ${this.place(near.place)}: ${figure(spot.y)}${unit}${spread(spot)}; ${here.indexOf(near) + 1} of ${here.length}`;
      this.cross.setAttribute('d', this.area.x ? `M${n(near.x)},${this.area.top}V${this.area.bottom}` : `M${n(this.area.left)},${n(near.y)}H${n(this.area.right)}`);
      const box = this.svg.getBoundingClientRect(), scale = box.width / WIDTH, left = near.x * scale;
      this.tip.style.top = n(Math.max(near.y * scale + 14, 0)) + 'px';
      this.tip.style.left = left < box.width / 2 ? n(left + 14) + 'px' : 'auto';
      this.tip.style.right = left < box.width / 2 ? 'auto' : n(this.svg.parentElement.clientWidth - left + 14) + 'px';
    }
  }

  return {read, svg, html, n, clamp, short, figure, Plot};
})();
