%% What a call that raised an exception looked like from outside.
-record(raised, {class, reason, function, arguments, cause = none, blamed = none}).
