%% The row of mixed terms with key K and number I: an integer, a map of three, a list of three.
-define(MIXED(K, I), {K, I, #{id => I, kind => person, age => I band 127}, [I, I band 255, tag]}).
