// Starts everything, once the page is there.
'use strict';

{
  const charts = new Map(larder.read('plots-data').map(chart => [chart.id, chart]));
  document.body.append(larder.html('p', {id: 'plot-keys', hidden: ''}, 'Arrow keys read the figures, Escape stops.'));
  larder.plots = [...document.querySelectorAll('[data-plot]')].map(figure => new larder.Plot(figure, charts.get(figure.id)));
  if (document.getElementById('tree-data')) larder.tree();

  const root = document.documentElement, theme = larder.html('button', {type: 'button', class: 'theme'}, 'Dark or light');
  theme.onclick = () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
  };
  document.querySelector('header').prepend(theme);

  // On paper everything is open, and afterwards as it was.
  let opened = [];
  addEventListener('beforeprint', () => { opened = [...document.querySelectorAll('details:not([open])')]; opened.forEach(one => { one.open = true; }); });
  addEventListener('afterprint', () => opened.forEach(one => { one.open = false; }));
  root.dataset.ready = larder.plots.length;
}
