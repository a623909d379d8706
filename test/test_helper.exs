ExUnit.start(assert_receive_timeout: 5000)
